// Sentences as code points, and what Python's string methods say of them: sacreBLEU's scores rest
// on those definitions of white space and lower case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::scoring {

// A byte that is not valid UTF-8 becomes a character of its own, U+DC00 + byte.
std::u32string to_characters(std::string_view text);

// What str.isspace() holds for.
bool is_white_space(char32_t character);

std::u32string lower_case(std::u32string_view text);
std::u32string without_trailing_space(std::u32string_view text);
std::u32string without_space(std::u32string_view text);
std::vector<std::u32string> split_at_space(std::u32string_view text);

}  // namespace heed::scoring
