// Lists of numbers, and sizes, as options and requests take them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// "a, b" as its items, without the spaces around them. Throws Error{invalid_argument} for an empty
// item, as in "a,,b" or "a,". The items borrow from `text`.
std::vector<std::string_view> split_list(std::string_view text);

// "0-3,7,-1" as 0, 1, 2, 3, 7, -1; empty for an empty text. Throws Error{invalid_argument} with the
// item that is not a number or a range, and for more than a million numbers.
std::vector<std::int64_t> parse_indices(const std::string& text);

// "1GiB", "500 MB", "4096" as bytes. Throws Error{invalid_argument} for anything else.
std::int64_t parse_bytes(const std::string& text);

}  // namespace heed
