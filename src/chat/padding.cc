#include "chat/padding.h"

#include <algorithm>

namespace heed::chat {

Text padded(Runtime& runtime, const Text& text, const Padding& padding) {
  if (padding.fill.empty() || character_size(padding.fill.bytes(), 0) != padding.fill.size()) {
    runtime.fail("a width is filled with one character");
  }
  runtime.count_read(text.size());
  const auto size = static_cast<std::int64_t>(character_count(text.bytes()));
  if (padding.width <= size) return text;
  const std::int64_t missing = padding.width - size;
  runtime.require_text_size(static_cast<std::size_t>(padding.width));
  runtime.count_bytes(text.size() + static_cast<std::size_t>(missing) * padding.fill.size());
  // Python puts the odd one of centred text to the left where the width is odd.
  const std::int64_t left = padding.filled == Side::left ? missing
                            : padding.filled == Side::right
                                ? 0
                                : missing / 2 + (missing & padding.width & 1);
  Text result = text.part(0, 0);
  for (std::int64_t i = 0; i < left; ++i) result.append(padding.fill);
  result.append(text);
  for (std::int64_t i = left; i < missing; ++i) result.append(padding.fill);
  return result;
}

}  // namespace heed::chat
