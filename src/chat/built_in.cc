#include "chat/built_in.h"

#include <algorithm>
#include <utility>

#include "chat/operators.h"
#include "chat/print.h"

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

constexpr std::size_t longest_message = 1000;  // bytes of raise_exception()

[[noreturn]] void raise_exception(Runtime& runtime, const Arguments& given) {
  const Parameters parameters(runtime, "raise_exception", given, {"message"});
  const Text message = to_text(runtime, parameters.at(0));
  runtime.fail("{}", shortened(message.bytes(), longest_message));
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

}  // namespace heed::chat
