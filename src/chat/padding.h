// Texts filled to a width, in characters.
#pragma once

#include <cstdint>

#include "chat/runtime.h"
#include "chat/text.h"

namespace heed::chat {

struct Padding {
  std::int64_t width = 0;
  Side filled = Side::both;  // where the fill goes
  Text fill = Text(" ");     // one character
};

// As str.center(), ljust() and rjust(). Throws for a fill that is not one character, and before the
// result would be too long.
Text padded(Runtime& runtime, const Text& text, const Padding& padding);

}  // namespace heed::chat
