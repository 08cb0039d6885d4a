// Values as text.
#pragma once

#include <optional>
#include <string>

#include "chat/value.h"

namespace heed::chat {

// As Python's str() prints it; nothing for an undefined value.
Text to_text(Runtime& runtime, const Value& value);

// As Python's repr() prints it: strings in quotes.
Text to_repr(Runtime& runtime, const Value& value);

// As markupsafe's escape(): & < > " ' become entities, and the text is HTML. Of what is HTML
// already nothing changes.
Text html_escaped(Runtime& runtime, const Text& text);

std::string real_text(double value);  // 1.0, 1e+16, inf

struct JsonLayout {
  bool ascii = false;  // other characters as \uXXXX
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; none: all on one line
  std::string item_separator = ", ";  // with an indent: ","
  std::string key_separator = ": ";
};
// As Python's json.dumps() does. Throws for a value that JSON does not have.
Text to_json(Runtime& runtime, const Value& value, const JsonLayout& layout);

struct Padding {
  std::int64_t width = 0;
  Side filled = Side::both;  // where the fill goes
  Text fill = Text(" ");     // one character
};

// As str.center(), ljust() and rjust(). Throws for a fill that is not one character, and before the
// result would be too long.
Text padded(Runtime& runtime, const Text& text, const Padding& padding);

// Python's "format" % value, where a tuple is several values; `names` are those of %(name)s.
Text percent_format(Runtime& runtime, const Text& format, const std::vector<Value>& values,
                    const Dict* names = nullptr);

// Python's format.format(…): {0.name[key]!r:>8}.
Text brace_format(Runtime& runtime, const Text& format, const Arguments& arguments);

}  // namespace heed::chat
