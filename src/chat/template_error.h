// Errors in a template, with its name and the line.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace heed::chat {

// Where in a template: for messages.
struct Place {
  std::string_view name;
  int line = 0;
};

// The template is not valid Jinja.
template <class... Args>
[[noreturn]] void fail_syntax(Place place, fmt::format_string<Args...> message, Args&&... args) {
  fail(ErrorCode::corrupt_data, "{}, line {}: {}", place.name, place.line,
       fmt::format(message, std::forward<Args>(args)...));
}

// `construct` is Jinja, but outside the subset.
[[noreturn]] inline void fail_unsupported(Place place, std::string_view construct) {
  fail(ErrorCode::unsupported, "{}, line {}: {} is not supported in chat templates", place.name,
       place.line, construct);
}

// Names and texts come from files: they are cut for messages, between two characters.
inline std::string shortened(std::string_view text, std::size_t longest = 60) {
  if (text.size() <= longest) return std::string(text);
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0) == 0x80) --longest;
  return std::string(text.substr(0, longest)) + "…";
}

}  // namespace heed::chat
