// Suggests known names for an unknown one: "did you mean …?".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// Returns up to `count` candidates, nearest first, by edit distance (Levenshtein 1966). Only the
// first 100 bytes of `name` are compared.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates,
                                       std::size_t count);

}  // namespace heed
