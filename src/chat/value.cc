#include "chat/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace heed::chat {
namespace {

// Equal for equal keys only.
std::string index_key(Runtime& runtime, const Value& key) {
  if (const Text* text = key.text()) {
    runtime.count_read(text->size());
    return fmt::format("s{}", text->bytes());
  }
  if (key.is_integer()) return fmt::format("i{}", key.integer());
  if (const double* real = key.get_if<double>()) {
    const bool whole = std::floor(*real) == *real && std::abs(*real) < 9e15;
    if (whole) return fmt::format("i{}", static_cast<std::int64_t>(*real));
    return fmt::format("d{}", *real);
  }
  return key.is_undefined() ? "u" : "n";
}

constexpr std::array<std::string_view, 9> usual_roles = {"system",    "developer", "user",
                                                         "assistant", "model",     "tool",
                                                         "function",  "ipython",   "environment"};

Value conversation_text(Runtime& runtime, std::string_view text) {
  return runtime.text(Text(text, Origin::conversation));
}

Value nested_value(Runtime& runtime, const OrderedJson& json, int depth);

Value dict_value(Runtime& runtime, const OrderedJson& json, int depth) {
  Dict* const dict = runtime.new_dict();
  for (const auto& [key, value] : json.items()) {
    dict->set(runtime, conversation_text(runtime, key), nested_value(runtime, value, depth + 1));
  }
  return dict;
}

Value list_value(Runtime& runtime, const OrderedJson& json, int depth) {
  std::vector<Value> items;
  for (const OrderedJson& item : json) items.push_back(nested_value(runtime, item, depth + 1));
  return runtime.new_list(std::move(items));
}

Value nested_value(Runtime& runtime, const OrderedJson& json, int depth) {
  require_value_depth(runtime, depth);
  runtime.count_steps(1);
  switch (json.type()) {
    case OrderedJson::value_t::object: return dict_value(runtime, json, depth);
    case OrderedJson::value_t::array: return list_value(runtime, json, depth);
    case OrderedJson::value_t::string:
      return conversation_text(runtime, json.get_ref<const std::string&>());
    case OrderedJson::value_t::boolean: return json.get<bool>();
    case OrderedJson::value_t::number_integer: return json.get<std::int64_t>();
    case OrderedJson::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > INT64_MAX) {
        runtime.fail("the number {} of the conversation does not fit into 64 bits",
                     json.get<std::uint64_t>());
      }
      return json.get<std::int64_t>();
    case OrderedJson::value_t::number_float: return json.get<double>();
    default: return None{};
  }
}

}  // namespace

std::int64_t Value::integer() const {
  if (const bool* value = get_if<bool>()) return *value ? 1 : 0;
  return *get_if<std::int64_t>();
}

double Value::real() const {
  if (const double* value = get_if<double>()) return *value;
  return static_cast<double>(integer());
}

bool Dict::can_be_key(const Value& value) {
  return value.text() != nullptr || value.is_number() || value.is_none() || value.is_undefined();
}

void Dict::set(Runtime& runtime, const Value& key, Value value) {
  const auto [found, added] = index_.try_emplace(index_key(runtime, key), entries_.size());
  if (added) {
    entries_.emplace_back(key, std::move(value));
  } else {
    entries_[found->second].second = std::move(value);
  }
}

const Value* Dict::find(Runtime& runtime, const Value& key) const {
  if (!can_be_key(key)) return nullptr;
  const auto found = index_.find(index_key(runtime, key));
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

const Value* Dict::find_name(Runtime& runtime, std::string_view key) const {
  runtime.count_read(key.size());
  const auto found = index_.find(fmt::format("s{}", key));
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

std::string_view type_name(const Value& value) {
  if (value.is_undefined()) return "undefined";
  if (value.is_none()) return "none";
  if (value.get_if<bool>() != nullptr) return "bool";
  if (value.is_integer()) return "int";
  if (value.is_number()) return "float";
  if (value.text() != nullptr) return "string";
  if (const List* list = value.pointer<List>()) {
    return list->kind == ListKind::list ? "list" : "tuple";
  }
  if (value.pointer<Dict>() != nullptr) return "dict";
  if (value.pointer<Namespace>() != nullptr) return "namespace";
  if (value.pointer<Loop>() != nullptr) return "loop";
  if (value.pointer<Cycler>() != nullptr) return "cycler";
  return "function";
}

void Runtime::count_steps(std::size_t steps) {
  if (stop_requested(limits_.stop)) {
    heed::fail(ErrorCode::interrupted, "{}: stopped before the text was complete", name_);
  }
  const std::int64_t left = limits_.steps - steps_;
  if (left < 0 || steps > static_cast<std::size_t>(left)) {
    fail("the template needs more than {} steps", limits_.steps);
  }
  steps_ += static_cast<std::int64_t>(steps);
}

void Runtime::require_text_size(std::size_t bytes) const {
  if (bytes > limits_.output_bytes) {
    fail("a text would be longer than {} bytes", limits_.output_bytes);
  }
}

void Runtime::count_bytes(std::size_t bytes) {
  require_text_size(bytes);
  count_read(bytes);
  bytes_ += static_cast<std::int64_t>(bytes);
  if (bytes_ > limits_.text_bytes) {
    fail("the template makes more than {} bytes of text", limits_.text_bytes);
  }
}

Value Runtime::text(Text text) {
  count_bytes(text.size());
  return std::make_shared<const Text>(std::move(text));
}

List* Runtime::new_list(std::vector<Value> items, ListKind kind) {
  count_steps(items.size());
  return &lists_.emplace_back(List{kind, std::move(items)});
}

Callable* Runtime::new_callable(std::string name, std::function<Value(const Arguments&)> call) {
  return &callables_.emplace_back(Callable{std::move(name), std::move(call)});
}

Nesting::Nesting(Runtime& runtime) : runtime_(runtime) {
  if (runtime.depth_ >= runtime.limits_.depth) {
    runtime.fail("the template nests deeper than {} levels when it is evaluated",
                 runtime.limits_.depth);
  }
  ++runtime.depth_;
}

void require_value_depth(const Runtime& runtime, int depth) {
  if (depth > deepest_value) {
    runtime.fail("a list or dictionary nests deeper than {} levels", deepest_value);
  }
}

Value json_value(Runtime& runtime, const OrderedJson& json) {
  return nested_value(runtime, json, 0);
}

Value messages_value(Runtime& runtime, const OrderedJson& messages) {
  Value value = json_value(runtime, messages);
  const List* const list = value.pointer<List>();
  if (list == nullptr) runtime.fail("the messages must be a list, not a {}", type_name(value));
  for (const Value& message : list->items) {
    Dict* const dict = message.pointer<Dict>();
    if (dict == nullptr) runtime.fail("a message must be an object, not a {}", type_name(message));
    const Value* const role = dict->find_name(runtime, "role");
    if (role == nullptr || role->text() == nullptr) continue;
    const std::string_view name = role->text()->bytes();
    if (std::ranges::find(usual_roles, name) != usual_roles.end()) {
      dict->set(runtime, runtime.text("role"), runtime.text(name));
    }
  }
  return value;
}

void mark_last_content(Runtime& runtime, const Value& messages) {
  const std::vector<Value>& list = messages.pointer<List>()->items;
  Dict* const last = list.empty() ? nullptr : list.back().pointer<Dict>();
  const Value* const content = last == nullptr ? nullptr : last->find_name(runtime, "content");
  if (content == nullptr || content->text() == nullptr) {
    runtime.fail("only a last message whose content is a text can be continued");
  }
  Text marked = *content->text();
  marked.append("x ", Origin::end_mark);
  last->set(runtime, runtime.text("content"), runtime.text(std::move(marked)));
}

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
