// Numbers in Python's formats.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "chat/runtime.h"
#include "chat/value.h"

namespace heed::chat {

struct NumberFormat {
  std::string fill = " ";  // one character
  char align = '>';        // < ^ > and =, which puts the fill behind the sign; a space: not given
  char sign = '-';         // of numbers that are not negative: + or a space; -: none
  bool zeros = false;      // the width begins with 0
  std::size_t width = 0;
  char grouping = ' ';  // , or _ between thousands; a space: none
  std::optional<std::size_t> precision{};
  char kind = 's';  // d x X o b f F e E g G %; a space: as str() writes it
};

// The sign and digits of a number; the width is not applied. Throws for a kind that the number does
// not have.
std::string formatted_number(const Runtime& runtime, const Value& value,
                             const NumberFormat& format);

}  // namespace heed::chat
