// The values of a template, as text too, and the rendering that owns them: its limits, its errors,
// and the lists and dictionaries that it makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "chat/text.h"

namespace heed::chat {

struct RenderLimits {
  std::int64_t steps = 4'000'000;  // expressions, statements, elements of lists, and bytes read
  std::int64_t text_bytes = 256 << 20;  // of all strings that are made, kept or not
  std::size_t output_bytes = 16 << 20;  // of the rendered text, and of any one string
  int depth = 400;                      // nested expressions, statements and macros being evaluated
  StopFlag stop = nullptr;              // looked at in every step: throws Error{interrupted}
};

// Bytes of text that an operation reads or writes in one step. No operation takes more than linear
// time, so that steps bound the time of a rendering whatever its template and its messages are.
constexpr std::size_t bytes_of_a_step = 256;

// Limits of a template itself.
constexpr std::size_t max_template = 1 << 20;  // bytes
constexpr int deepest_syntax = 100;            // nested expressions or statements
constexpr std::size_t max_date_format = 1024;  // bytes, of strftime_now()
constexpr int deepest_value = 100;             // lists in lists
// Operators, attributes and calls in one tag; they nest to the left.
constexpr int max_links = 1000;

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

// Lists, dictionaries and whatever else can refer to itself belong to the Runtime of one rendering,
// and values point to them.
struct List;
class Dict;
struct Namespace;
struct Loop;
struct Cycler;
struct Callable;
class Runtime;

struct None {};

// Jinja's Undefined: prints as nothing, and has no attributes.
struct Undefined {
  std::shared_ptr<const std::string> what;  // "'name'", for messages
};

using TextPointer = std::shared_ptr<const Text>;

class Value {
 public:
  Value() : storage_(Undefined{}) {}
  Value(None none) : storage_(none) {}
  Value(Undefined undefined) : storage_(std::move(undefined)) {}
  Value(bool value) : storage_(value) {}
  Value(std::int64_t value) : storage_(value) {}
  Value(double value) : storage_(value) {}
  Value(TextPointer text) : storage_(std::move(text)) {}
  Value(List* list) : storage_(list) {}
  Value(Dict* dict) : storage_(dict) {}
  Value(Namespace* names) : storage_(names) {}
  Value(Loop* loop) : storage_(loop) {}
  Value(Cycler* cycler) : storage_(cycler) {}
  Value(Callable* callable) : storage_(callable) {}
  Value(const char*) = delete;  // would become a bool

  static Value undefined(std::string what) {
    return Undefined{std::make_shared<const std::string>(std::move(what))};
  }

  // The value of this type, or null: T is None, Undefined, bool, std::int64_t or double.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  // What it points to, or null: T is List, Dict, Namespace, Loop, Cycler or Callable.
  template <class T>
  T* pointer() const {
    const auto found = std::get_if<T*>(&storage_);
    return found == nullptr ? nullptr : *found;
  }
  const Text* text() const {
    const auto found = std::get_if<TextPointer>(&storage_);
    return found == nullptr ? nullptr : found->get();
  }

  bool is_undefined() const { return get_if<Undefined>() != nullptr; }
  bool is_none() const { return get_if<None>() != nullptr; }
  // bool counts as a number, as in Python.
  bool is_number() const { return is_integer() || get_if<double>() != nullptr; }
  bool is_integer() const { return get_if<bool>() != nullptr || get_if<std::int64_t>() != nullptr; }
  std::int64_t integer() const;  // of bool and std::int64_t
  double real() const;           // of a number

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, TextPointer, List*, Dict*, Namespace*,
               Loop*, Cycler*, Callable*>
      storage_;
};

enum class ListKind { list, tuple };

struct List {
  ListKind kind = ListKind::list;
  std::vector<Value> items;
  bool is_group = false;  // of groupby: a tuple (grouper, list) that has these attributes
};

// Keeps the order of insertion. Keys are texts, numbers, bool, none and undefined; 1, 1.0 and true
// are equal.
class Dict {
 public:
  static bool can_be_key(const Value& value);

  // Each counts steps for the bytes of the key.
  void set(Runtime& runtime, const Value& key, Value value);  // for a key that can be one
  const Value* find(Runtime& runtime, const Value& key) const;
  const Value* find_name(Runtime& runtime, std::string_view key) const;
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<Value, Value>> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;  // by a key's kind and bytes
};

struct Namespace {
  Dict attributes;
};

// The variable `loop` of a for.
struct Loop {
  std::vector<Value> items;  // its own, since a namespace may keep the loop
  std::size_t index = 0;     // from 0
  Value changed;             // what loop.changed() was last called with
  int depth = 0;             // of recursive calls
  std::function<Value(const Value& iterated)> recurse;  // loop(…) of a recursive for
};

// cycler(…)
struct Cycler {
  std::vector<Value> items;  // at least one
  std::size_t position = 0;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable {
  std::string name;
  std::function<Value(const Arguments&)> call;
};

// The name of a value's type in Python, for messages.
std::string_view type_name(const Value& value);

// What the parts of an evaluation share: the memory of one rendering, its limits and the current
// line.
class Runtime {
 public:
  Runtime(const RenderLimits& limits, std::string_view name) : limits_(limits), name_(name) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Place place() const { return {name_, line_}; }
  void set_line(int line) { line_ = line; }

  // Throws Error{invalid_argument} with the name and line.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> message, Args&&... args) const {
    heed::fail(ErrorCode::invalid_argument, "{}, line {}: {}", name_, line_,
               fmt::format(message, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_unsupported(std::string_view construct) const {
    chat::fail_unsupported(place(), construct);
  }

  // Counts work before it is done. Throws for a limit, and once the rendering is to stop.
  void count_steps(std::size_t steps);
  void count_read(std::size_t bytes) { count_steps(bytes / bytes_of_a_step); }
  void count_bytes(std::size_t bytes);  // of text that is made

  // Throws if a text of this size would be too long.
  void require_text_size(std::size_t bytes) const;

  // Text that becomes a value.
  Value text(Text text);
  Value text(std::string_view bytes) { return text(Text(bytes)); }

  List* new_list(ListKind kind = ListKind::list) { return &lists_.emplace_back(List{kind, {}}); }
  List* new_list(std::vector<Value> items, ListKind kind = ListKind::list);
  Dict* new_dict() { return &dicts_.emplace_back(); }
  Namespace* new_namespace() { return &namespaces_.emplace_back(); }
  Loop* new_loop() { return &loops_.emplace_back(); }
  Cycler* new_cycler() { return &cyclers_.emplace_back(); }
  Callable* new_callable(std::string name, std::function<Value(const Arguments&)> call);

  const RenderLimits& limits() const { return limits_; }

 private:
  friend class Nesting;

  RenderLimits limits_;
  std::string_view name_;
  int line_ = 1;
  std::int64_t steps_ = 0;
  std::int64_t bytes_ = 0;
  int depth_ = 0;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Namespace> namespaces_;
  std::deque<Loop> loops_;
  std::deque<Cycler> cyclers_;
  std::deque<Callable> callables_;
};

// One level of evaluation, which takes a part of the stack.
class Nesting {
 public:
  explicit Nesting(Runtime& runtime);
  ~Nesting() { --runtime_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Runtime& runtime_;
};

// Throws if lists and dictionaries nest deeper than they may, or contain themselves.
void require_value_depth(const Runtime& runtime, int depth);

// JSON of a conversation as values of a template. Texts have the origin `conversation`. Throws
// Error{invalid_argument} for numbers beyond 64 bits and for values that nest too deep.
Value json_value(Runtime& runtime, const OrderedJson& json);

// The same, but the usual roles are the template's own text.
Value messages_value(Runtime& runtime, const OrderedJson& messages);

// Puts an end mark after the content of the last message: a letter and a space, which a template
// that strips contents takes away. Throws Error{invalid_argument} if there is no content.
void mark_last_content(Runtime& runtime, const Value& messages);

// Values as text.
//
// As Python's str() prints it; nothing for an undefined value.
Text to_text(Runtime& runtime, const Value& value);

// As Python's repr() prints it: strings in quotes.
Text to_repr(Runtime& runtime, const Value& value);

// As markupsafe's escape(): & < > " ' become entities, and the text is HTML. What is HTML already
// does not change.
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
