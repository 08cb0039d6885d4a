// The tests of Jinja: value is name(arguments).
#include <algorithm>
#include <array>

#include "chat/built_in.h"
#include "chat/operators.h"
#include "chat/print.h"

namespace heed::chat {
namespace {

const Value& only_argument(Runtime& runtime, std::string_view name, const Arguments& given) {
  if (given.positional.size() != 1 || !given.named.empty()) {
    runtime.fail("the test '{}' takes one argument", name);
  }
  return given.positional[0];
}

// A comparison with the one argument.
template <BinaryOperator operation>
bool compares(Runtime& runtime, const Value& input, const Arguments& given) {
  return truth(apply_binary(runtime, operation, input, only_argument(runtime, "compare", given)));
}

template <bool (*holds)(const Value&)>
bool of_value(Runtime& runtime, const Value& input, const Arguments& given) {
  if (!given.positional.empty() || !given.named.empty()) runtime.fail("this test has no arguments");
  return holds(input);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_string(const Value& value) { return value.text() != nullptr; }
bool is_mapping(const Value& value) { return value.pointer<Dict>() != nullptr; }
// An undefined value has no elements, but it can be iterated over.
bool is_iterable(const Value& value) {
  return value.is_undefined() || value.text() != nullptr || value.pointer<List>() != nullptr ||
         value.pointer<Dict>() != nullptr;
}
bool is_boolean(const Value& value) { return value.get_if<bool>() != nullptr; }
bool is_true(const Value& value) { return is_boolean(value) && value.integer() == 1; }
bool is_false(const Value& value) { return is_boolean(value) && value.integer() == 0; }
bool is_number(const Value& value) { return value.is_number(); }
bool is_integer(const Value& value) { return value.get_if<std::int64_t>() != nullptr; }
bool is_real(const Value& value) { return value.get_if<double>() != nullptr; }
bool is_callable(const Value& value) { return value.pointer<Callable>() != nullptr; }

std::int64_t whole(Runtime& runtime, const Value& value) {
  if (!value.is_integer())
    runtime.fail("a value of type {} is not a whole number", type_name(value));
  return value.integer();
}

bool is_divisible(Runtime& runtime, const Value& input, const Arguments& given) {
  const Value& divisor = only_argument(runtime, "divisibleby", given);
  return !truth(apply_binary(runtime, BinaryOperator::modulo, Value(whole(runtime, input)),
                             Value(whole(runtime, divisor))));
}

bool is_odd(Runtime& runtime, const Value& input, const Arguments&) {
  return whole(runtime, input) % 2 != 0;
}

bool is_even(Runtime& runtime, const Value& input, const Arguments&) {
  return whole(runtime, input) % 2 == 0;
}

// Python's `is`: the same object. Numbers and texts, which never change, are the same if they are
// equal and of one type.
bool is_same(Runtime& runtime, const Value& input, const Arguments& given) {
  const Value& other = only_argument(runtime, "sameas", given);
  if (input.is_undefined() || type_name(input) != type_name(other)) return false;
  const auto same = [&](auto* left, auto* right) { return left == right; };
  if (input.pointer<List>() != nullptr) return same(input.pointer<List>(), other.pointer<List>());
  if (input.pointer<Dict>() != nullptr) return same(input.pointer<Dict>(), other.pointer<Dict>());
  return equal(runtime, input, other);
}

bool is_escaped(const Value& value) { return value.text() != nullptr && value.text()->is_markup(); }

template <class Found, const Found* (*find)(std::string_view)>
bool is_known(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "filter", given, {});
  return input.text() != nullptr && find(input.text()->bytes()) != nullptr;
}

bool is_in(Runtime& runtime, const Value& input, const Arguments& given) {
  return contains(runtime, only_argument(runtime, "in", given), input);
}

// Has letters, all of that case.
template <bool (*has_case)(char32_t), bool (*has_other_case)(char32_t)>
bool all_letters(Runtime& runtime, const Value& input, const Arguments&) {
  const Text text = to_text(runtime, input);
  bool found = false;
  for (std::size_t i = 0; i < text.size(); i += character_size(text.bytes(), i)) {
    const char32_t character = character_at(text.bytes(), i);
    if (has_other_case(character) || is_title(character)) return false;
    found = found || has_case(character);
  }
  return found;
}

constexpr std::array all_predicates = {
    Predicate{"defined", of_value<is_defined>},
    Predicate{"undefined", of_value<is_undefined>},
    Predicate{"none", of_value<is_none>},
    Predicate{"string", of_value<is_string>},
    Predicate{"mapping", of_value<is_mapping>},
    Predicate{"iterable", of_value<is_iterable>},
    Predicate{"sequence", of_value<is_iterable>},
    Predicate{"boolean", of_value<is_boolean>},
    Predicate{"true", of_value<is_true>},
    Predicate{"false", of_value<is_false>},
    Predicate{"number", of_value<is_number>},
    Predicate{"integer", of_value<is_integer>},
    Predicate{"float", of_value<is_real>},
    Predicate{"callable", of_value<is_callable>},
    Predicate{"equalto", compares<BinaryOperator::equal>},
    Predicate{"eq", compares<BinaryOperator::equal>},
    Predicate{"==", compares<BinaryOperator::equal>},
    Predicate{"ne", compares<BinaryOperator::not_equal>},
    Predicate{"!=", compares<BinaryOperator::not_equal>},
    Predicate{"lt", compares<BinaryOperator::less>},
    Predicate{"lessthan", compares<BinaryOperator::less>},
    Predicate{"<", compares<BinaryOperator::less>},
    Predicate{"le", compares<BinaryOperator::less_equal>},
    Predicate{"<=", compares<BinaryOperator::less_equal>},
    Predicate{"gt", compares<BinaryOperator::greater>},
    Predicate{"greaterthan", compares<BinaryOperator::greater>},
    Predicate{">", compares<BinaryOperator::greater>},
    Predicate{"ge", compares<BinaryOperator::greater_equal>},
    Predicate{">=", compares<BinaryOperator::greater_equal>},
    Predicate{"in", is_in},
    Predicate{"sameas", is_same},
    Predicate{"escaped", of_value<is_escaped>},
    Predicate{"filter", is_known<Filter, find_filter>},
    Predicate{"test", is_known<Predicate, find_predicate>},
    Predicate{"divisibleby", is_divisible},
    Predicate{"odd", is_odd},
    Predicate{"even", is_even},
    Predicate{"lower", all_letters<is_lower, is_upper>},
    Predicate{"upper", all_letters<is_upper, is_lower>},
};

}  // namespace

const Predicate* find_predicate(std::string_view name) {
  const auto found = std::ranges::find(all_predicates, name, &Predicate::name);
  return found == all_predicates.end() ? nullptr : &*found;
}

}  // namespace heed::chat
