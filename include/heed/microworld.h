// The microworld: short English stories of a grammar, with the truth about them.
//
//   heed::microworld_story(7, 0, {"mystery"});  // JSON: text, and who did it, and where it says so
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/error.h"

namespace heed {

// "creature", "market", …, "mystery".
std::vector<std::string> microworld_kinds();

// Story `index` of a seed and kinds (empty: all), and its truth, as an object of JSON. Throws
// Error{invalid_argument} for an unknown kind and an index below 0.
std::string microworld_story(std::uint64_t seed, std::int64_t index,
                             const std::vector<std::string>& kinds = {});

// The natural logarithm of a text's probability under the grammar; −∞ for one that it cannot
// generate.
double microworld_log_probability(std::string_view text);

}  // namespace heed
