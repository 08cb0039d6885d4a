// What lists of claims and measured examples share: members of claims, and how captions are worded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace heed::examples {

// A text that an example must have. Throws Error{corrupt_data}.
std::string text_in(const Json& object, const char* key);
// Which occurrence of a word is meant, from 1; 0, the last, where nothing is said.
std::int64_t occurrence_in(const Json& object, const char* key = "occurrence");

// "96 %", "8.9 %", "99.8 %", "less than 0.1 %".
std::string percentage(double share);
// “word”, without the spaces before it.
std::string quoted(std::string_view text);
// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& items);
// To the precision of committed figures.
double rounded(double value);

}  // namespace heed::examples
