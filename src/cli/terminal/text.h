// Text measured and cut in terminal columns. Escape sequences for colour take no columns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers.h"

namespace heed::cli {

using heed::grouped;

// Columns that valid or invalid UTF-8 takes; an invalid byte counts as one.
int display_width(std::string_view text);

// Cut to `width` columns, ending in … where something was left out. Plain text only.
std::string fit(std::string_view text, int width);

// Filled with spaces to `width` columns; longer text is left as it is.
std::string pad_right(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);

std::string repeat(std::string_view piece, int times);

// Names above columns of `width`, written downwards and ending in the last line, each cut to
// `max_length` characters; every line begins with `margin` spaces. Plain text only.
std::vector<std::string> written_downwards(const std::vector<std::string>& names, int max_length,
                                           int width, int margin);

// Lines of at most `width` columns, broken at spaces where possible. Plain text only.
std::vector<std::string> wrap(std::string_view text, int width);

// Formats generated text for display: every line as in printable().
std::string printable_lines(std::string_view text);

// Formats a token's bytes for display: spaces as ␣, the rest as in printable().
std::string visible(std::string_view bytes);

// "1 token", "1,024 tokens".
std::string counted(long long number, std::string_view unit);

// 174604259328 as "174.6 B", 1.2e7 as "12.0 M", below a thousand as it is.
std::string short_count(double number);

// 3.2e9 bytes as "3.0 GiB".
std::string short_bytes(double bytes);

// A number in at most seven columns: 3.142, -12.5, 1.2e-07.
std::string short_number(double number);

// "2.1234 ± 0.0056"; without a standard error the value alone.
std::string with_error(double value, std::optional<double> standard_error, int decimals);

// A share of one in at most five columns: "62 %", "7.1 %", "0.3 %", "<.1%".
std::string percent(double share);

// A horizontal bar of share · width columns, to an eighth of a column and not padded. A share that
// is not zero shows at least an eighth.
std::string bar(double share, int width);

}  // namespace heed::cli
