// The filters, tests, methods and functions of Jinja and Python that templates may use.
#pragma once

#include <optional>
#include <string_view>

#include "chat/runtime.h"
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

}  // namespace heed::chat
