#include "chat/built_in.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

#include "chat/operators.h"
#include "chat/value.h"

namespace heed::chat {
namespace {

Value make_range(Runtime& runtime, const Arguments& given) {
  const Parameters parameters(runtime, "range", given, {"start", "stop", "step"});
  const bool has_stop = parameters.find(1) != nullptr;
  const std::int64_t start = has_stop ? parameters.integer(0, 0) : 0;
  const std::int64_t stop = parameters.integer(has_stop ? 1 : 0, 0);
  const std::int64_t step = parameters.integer(2, 1);
  parameters.at(0);
  if (step == 0) runtime.fail("the step of range() is 0");
  List* const list = runtime.new_list();
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    runtime.count_steps(1);
    list->items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list;
}

// The entries of a dictionary, or of a list of pairs.
void add_entries(Runtime& runtime, Dict& dict, const Value& source) {
  if (const Dict* const other = source.pointer<Dict>()) {
    runtime.count_steps(other->entries().size());
    for (const auto& [key, value] : other->entries()) dict.set(runtime, key, value);
    return;
  }
  for (const Value& element : elements_of(runtime, source)) {
    const List* const pair = element.pointer<List>();
    if (pair == nullptr || pair->items.size() != 2 || !Dict::can_be_key(pair->items[0])) {
      runtime.fail("a dictionary is made of pairs, not of a value of type {}", type_name(element));
    }
    dict.set(runtime, pair->items[0], pair->items[1]);
  }
}

void fill_dict(Runtime& runtime, Dict& dict, std::string_view function, const Arguments& given) {
  if (given.positional.size() > 1) runtime.fail("{}() takes one value and names", function);
  if (!given.positional.empty()) add_entries(runtime, dict, given.positional[0]);
  for (const auto& [name, value] : given.named) {
    runtime.count_steps(1);
    dict.set(runtime, runtime.text(name), value);
  }
}

constexpr std::size_t max_message = 1000;  // bytes of raise_exception()

[[noreturn]] void raise_exception(Runtime& runtime, const Arguments& given) {
  const Parameters parameters(runtime, "raise_exception", given, {"message"});
  const Text message = to_text(runtime, parameters.at(0));
  runtime.fail("{}", shortened(message.bytes(), max_message));
}

// cycler('a', 'b'): its next() is one after the other, again and again.
Value make_cycler(Runtime& runtime, const Arguments& given) {
  if (given.positional.empty() || !given.named.empty()) runtime.fail("cycler() needs values");
  runtime.count_steps(given.positional.size());
  Cycler* const cycler = runtime.new_cycler();
  cycler->items = given.positional;
  return cycler;
}

// joiner(', '): a function of an empty string at its first call, and of the separator from then on.
Value make_joiner(Runtime& runtime, const Arguments& given) {
  const Parameters parameters(runtime, "joiner", given, {"sep"});
  const Value separator = parameters.find(0) == nullptr ? runtime.text(", ") : parameters.at(0);
  return runtime.new_callable(
      "joiner", [&runtime, separator, used = false](const Arguments& arguments) mutable {
        const Parameters none(runtime, "joiner", arguments, {});
        return std::exchange(used, true) ? separator : runtime.text("");
      });
}

Value append_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "append", given, {"object"});
  runtime.count_steps(1);
  self.pointer<List>()->items.push_back(parameters.at(0));
  return None{};
}

Value index_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "index", given, {"value"});
  const auto& items = self.pointer<List>()->items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equal(runtime, items[i], parameters.at(0))) return static_cast<std::int64_t>(i);
  }
  runtime.fail("index(): the value is not in the list");
}

Value count_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "count", given, {"value"});
  std::int64_t count = 0;
  for (const Value& item : self.pointer<List>()->items) {
    count += equal(runtime, item, parameters.at(0)) ? 1 : 0;
  }
  return count;
}

Value copy_of_list(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "copy", given, {});
  return runtime.new_list(elements_of(runtime, self));
}

Value get_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "get", given, {"key", "default"});
  const Value* const found = self.pointer<Dict>()->find(runtime, parameters.at(0));
  if (found != nullptr) return *found;
  return parameters.find(1) == nullptr ? Value(None{}) : *parameters.find(1);
}

Value items_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "items", given, {});
  return pairs_of(runtime, *self.pointer<Dict>());
}

Value keys_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "keys", given, {});
  return runtime.new_list(elements_of(runtime, self));
}

Value values_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "values", given, {});
  std::vector<Value> values;
  for (const auto& entry : self.pointer<Dict>()->entries()) values.push_back(entry.second);
  return runtime.new_list(std::move(values));
}

Value copy_of_dict(Runtime& runtime, const Value& self, const Arguments& given) {
  const Parameters parameters(runtime, "copy", given, {});
  Dict* const copy = runtime.new_dict();
  for (const auto& [key, value] : self.pointer<Dict>()->entries()) {
    runtime.count_steps(1);
    copy->set(runtime, key, value);
  }
  return copy;
}

constexpr std::array methods_of_lists = {
    Method{"append", append_method},
    Method{"index", index_method},
    Method{"count", count_method},
    Method{"copy", copy_of_list},
};

constexpr std::array methods_of_dicts = {
    Method{"get", get_method},       Method{"items", items_method}, Method{"keys", keys_method},
    Method{"values", values_method}, Method{"copy", copy_of_dict},
};

template <class Function>
const Function* named(std::span<const Function> functions, std::string_view name) {
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

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

Value global_function(Runtime& runtime, std::string_view name) {
  const auto function = [&](auto call) {
    return runtime.new_callable(
        std::string(name),
        [&runtime, call](const Arguments& given) -> Value { return call(runtime, given); });
  };
  if (name == "range") return function(make_range);
  if (name == "dict") {
    return function([](Runtime& shared, const Arguments& given) {
      Dict* const dict = shared.new_dict();
      fill_dict(shared, *dict, "dict", given);
      return Value(dict);
    });
  }
  if (name == "namespace") {
    return function([](Runtime& shared, const Arguments& given) {
      Namespace* const names = shared.new_namespace();
      fill_dict(shared, names->attributes, "namespace", given);
      return Value(names);
    });
  }
  if (name == "cycler") return function(make_cycler);
  if (name == "joiner") return function(make_joiner);
  if (name == "raise_exception") {
    return function(
        [](Runtime& shared, const Arguments& given) -> Value { raise_exception(shared, given); });
  }
  return Value::undefined(fmt::format("'{}'", shortened(name)));
}

Parameters::Parameters(const Runtime& runtime, std::string_view function,
                       const Arguments& arguments, std::initializer_list<std::string_view> names)
    : runtime_(runtime), function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names_.size()) {
    runtime.fail("'{}' takes at most {} arguments, not {}", function, names_.size(),
                 arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      runtime.fail("'{}' has no argument '{}'", function, shortened(name));
    }
    const Value*& slot = values_[static_cast<std::size_t>(found - names_.begin())];
    if (slot != nullptr) runtime.fail("'{}' is given '{}' twice", function, name);
    slot = &value;
  }
}

const Value& Parameters::at(std::size_t index) const {
  if (values_[index] == nullptr) {
    runtime_.fail("'{}' needs the argument '{}'", function_, names_[index]);
  }
  return *values_[index];
}

bool Parameters::flag(std::size_t index, bool otherwise) const {
  return values_[index] == nullptr ? otherwise : truth(*values_[index]);
}

std::int64_t Parameters::integer(std::size_t index, std::int64_t otherwise) const {
  if (values_[index] == nullptr) return otherwise;
  if (!values_[index]->is_integer()) {
    runtime_.fail("the argument '{}' of '{}' must be a whole number, not a value of type {}",
                  names_[index], function_, type_name(*values_[index]));
  }
  return values_[index]->integer();
}

const Text& Parameters::text(std::size_t index) const {
  const Text* const text = at(index).text();
  if (text == nullptr) {
    runtime_.fail("the argument '{}' of '{}' must be a string, not a value of type {}",
                  names_[index], function_, type_name(at(index)));
  }
  return *text;
}

const Text* Parameters::optional_text(std::size_t index) const {
  if (values_[index] == nullptr || values_[index]->is_none()) return nullptr;
  return &text(index);
}

Value pairs_of(Runtime& runtime, const Dict& dict) {
  List* const pairs = runtime.new_list();
  for (const auto& entry : dict.entries()) {
    pairs->items.emplace_back(runtime.new_list({entry.first, entry.second}, ListKind::tuple));
  }
  return pairs;
}

Value replaced(Runtime& runtime, const Text& text, const Text& old, const Text& replacement,
               std::int64_t count) {
  const std::size_t most = count < 0 ? SIZE_MAX : static_cast<std::size_t>(count);
  runtime.count_read(text.size() + old.size());
  std::size_t found = 0;
  if (old.empty()) {
    found = character_count(text.bytes()) + 1;
  } else {
    for (std::size_t i = find_text(text.bytes(), old.bytes()); i != std::string_view::npos;
         i = find_text(text.bytes(), old.bytes(), i + old.size())) {
      ++found;
    }
  }
  std::size_t added = 0;
  if (__builtin_mul_overflow(std::min(found, most), replacement.size(), &added) ||
      added > runtime.limits().output_bytes + text.size()) {
    runtime.require_text_size(SIZE_MAX);
  }
  return runtime.text(replace(text, old.bytes(), replacement, most));
}

Value attribute_path(Runtime& runtime, const Value& item, const Value& path,
                     const Value* otherwise) {
  const auto found_or = [&](const Value& value) {
    return value.is_undefined() && otherwise != nullptr ? *otherwise : value;
  };
  const Text* const text = path.text();
  if (text == nullptr) return found_or(item_of(runtime, item, path));
  Value found = item;
  for (std::string_view rest = text->bytes();;) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view name = rest.substr(0, dot);
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_index = error == std::errc() && end == name.data() + name.size() && index >= 0;
    runtime.count_steps(1);
    found = found_or(item_of(runtime, found, is_index ? Value(index) : runtime.text(name)));
    if (dot == rest.size()) return found;
    rest.remove_prefix(dot + 1);
  }
}

Case case_of(const Parameters& parameters, std::size_t index) {
  return parameters.flag(index, false) ? Case::sensitive : Case::ignored;
}

Value sort_key(Runtime& runtime, const Value& value, Case letters) {
  if (letters == Case::sensitive || value.text() == nullptr) return value;
  runtime.count_read(value.text()->size());
  return runtime.text(change_case(*value.text(), Letters::lower));
}

SortOrder sort_order(const Parameters& parameters, std::size_t reverse) {
  return parameters.flag(reverse, false) ? SortOrder::descending : SortOrder::ascending;
}

std::vector<Value> sorted_by(Runtime& runtime, const std::vector<Value>& items,
                             const std::vector<Value>& keys, SortOrder order) {
  std::vector<std::size_t> places(items.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  // Merge sort stays within its memory whatever the comparison says (NaN has no order).
  std::ranges::stable_sort(places, [&](std::size_t left, std::size_t right) {
    return order == SortOrder::descending ? less(runtime, keys[right], keys[left])
                                          : less(runtime, keys[left], keys[right]);
  });
  std::vector<Value> sorted;
  for (const std::size_t i : places) sorted.push_back(items[i]);
  return sorted;
}

const Filter* find_filter(std::string_view name) {
  const Filter* const found = named(text_filters(), name);
  return found != nullptr ? found : named(list_filters(), name);
}

const Method* find_method(const Value& value, std::string_view name) {
  if (value.text() != nullptr) return named(text_methods(), name);
  if (value.pointer<Dict>() != nullptr) return named<Method>(methods_of_dicts, name);
  if (const List* const list = value.pointer<List>()) {
    const bool of_tuples = name == "index" || name == "count";
    if (list->kind == ListKind::tuple && !of_tuples) return nullptr;
    return named<Method>(methods_of_lists, name);
  }
  return nullptr;
}

const Predicate* find_predicate(std::string_view name) {
  return named<Predicate>(all_predicates, name);
}

}  // namespace heed::chat
