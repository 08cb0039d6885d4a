// The filters, tests, methods and functions of Jinja and Python that templates may use.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "chat/value.h"

namespace heed::chat {

// value | name(arguments)
struct Filter {
  std::string_view name;
  Value (*apply)(Runtime& runtime, const Value& input, const Arguments& arguments);
};
const Filter* find_filter(std::string_view name);  // null: there is none

// value is name(arguments): a test of Jinja.
struct Predicate {
  std::string_view name;
  bool (*holds)(Runtime& runtime, const Value& input, const Arguments& arguments);
};
const Predicate* find_predicate(std::string_view name);

// value.name(arguments)
struct Method {
  std::string_view name;
  Value (*call)(Runtime& runtime, const Value& self, const Arguments& arguments);
};
const Method* find_method(const Value& value, std::string_view name);

// range, namespace, dict, cycler, joiner and raise_exception.
Value global_function(Runtime& runtime, std::string_view name);  // undefined: there is none

// The arguments of a built-in function, by the names of its parameters. Throws
// Error{invalid_argument} for arguments that it does not have.
class Parameters {
 public:
  Parameters(const Runtime& runtime, std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> names);

  const Value* find(std::size_t index) const { return values_[index]; }  // null: not given
  const Value& at(std::size_t index) const;
  bool flag(std::size_t index, bool otherwise) const;
  std::int64_t integer(std::size_t index, std::int64_t otherwise) const;
  const Text& text(std::size_t index) const;
  // Not given, none: null.
  const Text* optional_text(std::size_t index) const;

 private:
  const Runtime& runtime_;
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

// What filters and methods of the same name share:

// A list of (key, value) tuples.
Value pairs_of(Runtime& runtime, const Dict& dict);

// A negative count: all occurrences. Throws before the result would be too long.
Value replaced(Runtime& runtime, const Text& text, const Text& old, const Text& replacement,
               std::int64_t count);

// item.a.b or item[0].b for "a.b" and "0.b", as the filters do that take an attribute's name.
// `otherwise` takes the place of an attribute that is missing, unless it is null.
Value attribute_path(Runtime& runtime, const Value& item, const Value& path,
                     const Value* otherwise = nullptr);

// The value by which elements are sorted or told apart: texts in lower case unless case counts.
enum class Case { ignored, sensitive };
Case case_of(const Parameters& parameters, std::size_t index);  // of a filter, by its flag
Value sort_key(Runtime& runtime, const Value& value, Case letters);

enum class SortOrder { ascending, descending };
SortOrder sort_order(const Parameters& parameters,
                     std::size_t reverse);  // of a filter, by its flag

// Sorts items by their keys, of which there are as many; equal ones keep their order.
std::vector<Value> sorted_by(Runtime& runtime, const std::vector<Value>& items,
                             const std::vector<Value>& keys, SortOrder order);

// The tables that find_filter() and find_method() look into.
std::span<const Filter> text_filters();  // of strings and numbers
std::span<const Filter> list_filters();  // of lists and dictionaries
std::span<const Method> text_methods();  // of strings

}  // namespace heed::chat
