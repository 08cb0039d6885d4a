#include "chat/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace heed::chat {
namespace {

// Builds one text whose parts may be lists in lists; every element is a step.
class Builder {
 public:
  explicit Builder(Runtime& runtime) : runtime_(runtime) {}

  void append(const Text& text) {
    built_.append(text);
    check_size();
  }
  void append(std::string_view bytes, Origin origin = Origin::chat_template) {
    built_.append(bytes, origin);
    check_size();
  }
  Text finish() { return std::move(built_); }
  Runtime& runtime() const { return runtime_; }

 private:
  void check_size() const { runtime_.require_text_size(built_.size()); }

  Runtime& runtime_;
  Text built_;
};

bool prints_as_escape(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || (c >= 0x2028 && c <= 0x202E);
}

// One character of repr(), if it is not printed as it is.
std::string python_escape(char32_t character, char quote) {
  switch (character) {
    case U'\n': return "\\n";
    case U'\r': return "\\r";
    case U'\t': return "\\t";
    case U'\\': return "\\\\";
    default: break;
  }
  if (character == static_cast<unsigned char>(quote)) return std::string("\\") + quote;
  if (!prints_as_escape(character)) return "";
  const auto number = static_cast<std::uint32_t>(character);
  return number < 0x100 ? fmt::format("\\x{:02x}", number) : fmt::format("\\u{:04x}", number);
}

std::string json_escape(char32_t character, bool ascii) {
  switch (character) {
    case U'"': return "\\\"";
    case U'\\': return "\\\\";
    case U'\n': return "\\n";
    case U'\r': return "\\r";
    case U'\t': return "\\t";
    case U'\b': return "\\b";
    case U'\f': return "\\f";
    default: break;
  }
  const auto number = static_cast<std::uint32_t>(character);
  if (number < 0x20) return fmt::format("\\u{:04x}", number);
  if (!ascii || number < 0x7F) return "";
  if (number < 0x10000) return fmt::format("\\u{:04x}", number);
  const std::uint32_t offset = number - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
}

std::string html_escape(char32_t character) {
  switch (character) {
    case U'&': return "&amp;";
    case U'<': return "&lt;";
    case U'>': return "&gt;";
    case U'"': return "&#34;";
    case U'\'': return "&#39;";
    default: return "";
  }
}

// Appends a text with some characters escaped; an escape has the origin of its character.
template <class Escape>
void append_escaped(Builder& builder, const Text& text, Escape escape) {
  const std::string_view bytes = text.bytes();
  std::size_t plain = 0;  // from here nothing was appended yet
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t size = character_size(bytes, i);
    const std::string escaped = escape(character_at(bytes, i));
    if (!escaped.empty()) {
      builder.append(text.part(plain, i - plain));
      builder.append(escaped, text.origin(i));
      plain = i + size;
    }
    i += size;
  }
  builder.append(text.part(plain));
}

std::string scalar_text(const Value& value) {
  if (value.is_none()) return "None";
  if (const bool* truth = value.get_if<bool>()) return *truth ? "True" : "False";
  if (value.is_integer()) return std::to_string(value.integer());
  if (const double* real = value.get_if<double>()) return real_text(*real);
  if (value.is_undefined()) return "Undefined";
  return fmt::format("<{}>", type_name(value));
}

void append_repr(Builder& builder, const Value& value, int depth) {
  require_value_depth(builder.runtime(), depth);
  builder.runtime().count_steps(1);
  if (const Text* text = value.text()) {
    builder.runtime().count_read(text->size());
    const bool has_single = text->bytes().find('\'') != std::string_view::npos;
    const bool has_double = text->bytes().find('"') != std::string_view::npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    if (text->is_markup()) builder.append("Markup(");
    builder.append(std::string(1, quote));
    append_escaped(builder, *text, [&](char32_t c) { return python_escape(c, quote); });
    builder.append(std::string(1, quote));
    if (text->is_markup()) builder.append(")");
  } else if (const List* list = value.pointer<List>()) {
    const bool tuple = list->kind == ListKind::tuple;
    builder.append(tuple ? "(" : "[");
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      if (i > 0) builder.append(", ");
      append_repr(builder, list->items[i], depth + 1);
    }
    if (tuple && list->items.size() == 1) builder.append(",");
    builder.append(tuple ? ")" : "]");
  } else if (const Dict* dict = value.pointer<Dict>()) {
    builder.append("{");
    for (std::size_t i = 0; i < dict->entries().size(); ++i) {
      if (i > 0) builder.append(", ");
      append_repr(builder, dict->entries()[i].first, depth + 1);
      builder.append(": ");
      append_repr(builder, dict->entries()[i].second, depth + 1);
    }
    builder.append("}");
  } else {
    builder.append(scalar_text(value));
  }
}

class JsonWriter {
 public:
  JsonWriter(Builder& builder, const JsonLayout& layout) : builder_(builder), layout_(layout) {}

  void write(const Value& value, int depth) {
    require_value_depth(builder_.runtime(), depth);
    builder_.runtime().count_steps(1);
    if (const Text* text = value.text()) {
      builder_.runtime().count_read(text->size());
      write_string(*text);
    } else if (const List* list = value.pointer<List>()) {
      write_list(*list, depth);
    } else if (const Dict* dict = value.pointer<Dict>()) {
      write_dict(*dict, depth);
    } else {
      builder_.append(scalar(value));
    }
  }

 private:
  std::string scalar(const Value& value) const {
    if (value.is_none()) return "null";
    if (const bool* truth = value.get_if<bool>()) return *truth ? "true" : "false";
    if (const double* real = value.get_if<double>(); real != nullptr && !std::isfinite(*real)) {
      if (std::isnan(*real)) return "NaN";
      return *real > 0 ? "Infinity" : "-Infinity";
    }
    if (!value.is_number()) builder_.runtime().fail("{} is not JSON", type_name(value));
    return scalar_text(value);
  }

  void write_string(const Text& text) {
    builder_.append("\"");
    const bool ascii = layout_.ascii;
    append_escaped(builder_, text, [ascii](char32_t c) { return json_escape(c, ascii); });
    builder_.append("\"");
  }

  void write_key(const Value& key) {
    if (const Text* text = key.text()) {
      write_string(*text);
    } else {
      builder_.append(fmt::format("\"{}\"", scalar(key)));
    }
  }

  void write_list(const List& list, int depth) {
    builder_.append("[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      begin_item(i, depth);
      write(list.items[i], depth + 1);
    }
    if (!list.items.empty()) new_line(depth);
    builder_.append("]");
  }

  void write_dict(const Dict& dict, int depth) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (layout_.sort_keys) sort(entries);
    builder_.append("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      begin_item(i, depth);
      write_key(entries[i]->first);
      builder_.append(layout_.key_separator);
      write(entries[i]->second, depth + 1);
    }
    if (!entries.empty()) new_line(depth);
    builder_.append("}");
  }

  void sort(std::vector<const std::pair<Value, Value>*>& entries) const {
    for (const auto* entry : entries) {
      if (entry->first.text() == nullptr) {
        builder_.runtime().fail("only dictionaries whose keys are strings can be sorted");
      }
    }
    std::ranges::stable_sort(entries, {},
                             [](const auto* entry) { return entry->first.text()->bytes(); });
  }

  void begin_item(std::size_t index, int depth) {
    if (index > 0) builder_.append(layout_.item_separator);
    new_line(depth + 1);
  }

  void new_line(int depth) {
    if (!layout_.indent) return;
    builder_.append("\n");
    for (int i = 0; i < depth; ++i) builder_.append(*layout_.indent);
  }

  Builder& builder_;
  const JsonLayout& layout_;
};

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char digits[32];
  // Shortest digits that read back as the same number: "d.ddde-dd".
  const auto written =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific);
  const std::string_view text(digits, static_cast<std::size_t>(written.ptr - digits));
  int exponent = 0;
  const std::size_t mark = text.find('e');
  const char* const first = text.data() + mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(first, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  char plain[64];
  const auto end = std::to_chars(plain, plain + sizeof plain, value, std::chars_format::fixed);
  std::string result(plain, end.ptr);
  if (result.find('.') == std::string::npos) result += ".0";
  return result;
}

Text to_text(Runtime& runtime, const Value& value) {
  if (const Text* text = value.text()) {
    runtime.count_read(text->size());
    return *text;
  }
  if (value.is_undefined()) return Text();
  return to_repr(runtime, value);
}

Text to_repr(Runtime& runtime, const Value& value) {
  Builder builder(runtime);
  append_repr(builder, value, 0);
  return builder.finish();
}

Text html_escaped(Runtime& runtime, const Text& text) {
  if (text.is_markup()) return text;
  runtime.count_read(text.size());
  Builder builder(runtime);
  append_escaped(builder, text, html_escape);
  return builder.finish().as_markup();
}

Text to_json(Runtime& runtime, const Value& value, const JsonLayout& layout) {
  Builder builder(runtime);
  JsonWriter(builder, layout).write(value, 0);
  return builder.finish();
}

}  // namespace heed::chat
