// Lists of numbers, and sizes, as options and requests take them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

// "0-3,7,-1" as 0, 1, 2, 3, 7, -1; empty for an empty text. Throws Error{invalid_argument} with the
// part that is no number and no range, and for more than a million numbers.
std::vector<std::int64_t> parse_indices(const std::string& text);

// "1GiB", "500 MB", "4096" as bytes. Throws Error{invalid_argument} for what is no size.
std::int64_t parse_bytes(const std::string& text);

}  // namespace heed
