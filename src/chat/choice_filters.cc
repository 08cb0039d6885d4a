// map, select, reject, selectattr and rejectattr, which apply a filter or test to each element.
#include <array>

#include "chat/collections.h"
#include "chat/filters.h"
#include "chat/operators.h"

namespace heed::chat {
namespace {

// The arguments after the first `count`.
Arguments remaining(const Arguments& given, std::size_t count) {
  Arguments rest{given.positional, given.named};
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

// These filters take none, zero and whatever else is false for no elements.
std::vector<Value> elements_if_true(Runtime& runtime, const Value& input) {
  return truth(input) ? elements_of(runtime, input) : std::vector<Value>();
}

Value map_attribute(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "map", given, {"attribute", "default"});
  List* const mapped = runtime.new_list();
  for (const Value& item : elements_if_true(runtime, input)) {
    mapped->items.push_back(attribute_path(runtime, item, parameters.at(0), parameters.find(1)));
  }
  return mapped;
}

Value map_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  if (given.positional.empty()) return map_attribute(runtime, input, given);
  const Text* const name = given.positional[0].text();
  if (name == nullptr) runtime.fail("'map' needs the name of a filter");
  const Filter* const filter = find_filter(name->bytes());
  if (filter == nullptr) {
    runtime.fail_unsupported(fmt::format("the filter '{}'", shortened(name->bytes())));
  }
  const Nesting nesting(runtime);
  const Arguments rest = remaining(given, 1);
  List* const mapped = runtime.new_list();
  for (const Value& item : elements_if_true(runtime, input)) {
    mapped->items.push_back(filter->apply(runtime, item, rest));
  }
  return mapped;
}

// Whether an element holds: by a test that arguments name from `begin` on, or by its truth.
class Choice {
 public:
  Choice(Runtime& runtime, const Arguments& given, std::size_t begin) : runtime_(runtime) {
    if (given.positional.size() <= begin) return;
    const Text* const name = given.positional[begin].text();
    if (name == nullptr) runtime.fail("elements are chosen by the name of a test");
    predicate_ = find_predicate(name->bytes());
    if (predicate_ == nullptr) {
      runtime.fail_unsupported(fmt::format("the test '{}'", shortened(name->bytes())));
    }
    arguments_ = remaining(given, begin + 1);
  }

  bool holds(const Value& value) const {
    return predicate_ == nullptr ? truth(value) : predicate_->holds(runtime_, value, arguments_);
  }

 private:
  Runtime& runtime_;
  const Predicate* predicate_ = nullptr;
  Arguments arguments_;
};

enum class Kept { holding, others };

template <Kept kept>
Value select_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Choice choice(runtime, given, 0);
  List* const chosen = runtime.new_list();
  for (const Value& item : elements_if_true(runtime, input)) {
    if (choice.holds(item) == (kept == Kept::holding)) chosen->items.push_back(item);
  }
  return chosen;
}

template <Kept kept>
Value select_attribute_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  if (given.positional.empty()) runtime.fail("'selectattr' needs the name of an attribute");
  const Choice choice(runtime, given, 1);
  List* const chosen = runtime.new_list();
  for (const Value& item : elements_if_true(runtime, input)) {
    const Value attribute = attribute_path(runtime, item, given.positional[0]);
    if (choice.holds(attribute) == (kept == Kept::holding)) chosen->items.push_back(item);
  }
  return chosen;
}

constexpr std::array filters_of_choice = {
    Filter{"map", map_filter},
    Filter{"select", select_filter<Kept::holding>},
    Filter{"reject", select_filter<Kept::others>},
    Filter{"selectattr", select_attribute_filter<Kept::holding>},
    Filter{"rejectattr", select_attribute_filter<Kept::others>},
};

}  // namespace

std::span<const Filter> choice_filters() { return filters_of_choice; }

}  // namespace heed::chat
