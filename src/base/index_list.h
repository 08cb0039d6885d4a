// Parses lists of numbers and sizes in options and requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// Splits "a, b" into its items, without the spaces around them. Throws Error{invalid_argument} for
// an empty item, as in "a,,b" or "a,". The items borrow from `text`.
std::vector<std::string_view> split_list(std::string_view text);

// Parses "0-3,7,-1" into 0, 1, 2, 3, 7, -1; returns an empty list for an empty text. Throws
// Error{invalid_argument} for an item that is not a number or a range, and for more than a million
// numbers.
std::vector<std::int64_t> parse_indices(const std::string& text);

// Parses "1GiB", "500 MB" or "4096" into bytes. Throws Error{invalid_argument} for anything else.
std::int64_t parse_bytes(const std::string& text);

}  // namespace heed
