// Filters of lists and dictionaries: their elements, those that a filter or test chooses, and
// groups of them.
#include <algorithm>
#include <array>

#include "chat/built_in.h"
#include "chat/operators.h"
#include "chat/value.h"

namespace heed::chat {
namespace {

// The elements, and by what each of them is compared.
struct Keyed {
  std::vector<Value> items;
  std::vector<Value> keys;
};

Keyed keyed(Runtime& runtime, const Value& input, const Value* attribute, Case letters) {
  Keyed result;
  result.items = elements_of(runtime, input);
  const bool by_attribute = attribute != nullptr && !attribute->is_none();
  for (const Value& item : result.items) {
    const Value key = by_attribute ? attribute_path(runtime, item, *attribute) : item;
    result.keys.push_back(sort_key(runtime, key, letters));
  }
  return result;
}

Value length_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "length", given, {});
  return static_cast<std::int64_t>(length_of(runtime, input));
}

Value list_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "list", given, {});
  return runtime.new_list(elements_of(runtime, input));
}

Value items_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "items", given, {});
  if (input.is_undefined()) return runtime.new_list();
  const Dict* const dict = input.pointer<Dict>();
  if (dict == nullptr) runtime.fail("a value of type {} has no items", type_name(input));
  return pairs_of(runtime, *dict);
}

Value default_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "default", given, {"default_value", "boolean"});
  const bool kept = parameters.flag(1, false) ? truth(input) : !input.is_undefined();
  if (kept) return input;
  return parameters.find(0) == nullptr ? runtime.text("") : parameters.at(0);
}

Value first_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "first", given, {});
  const std::vector<Value> items = elements_of(runtime, input);
  return items.empty() ? Value::undefined("the first of no elements") : items.front();
}

Value last_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "last", given, {});
  const std::vector<Value> items = elements_of(runtime, input);
  return items.empty() ? Value::undefined("the last of no elements") : items.back();
}

Value reverse_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "reverse", given, {});
  std::vector<Value> items = elements_of(runtime, input);
  std::ranges::reverse(items);
  if (input.text() == nullptr) return runtime.new_list(std::move(items));
  Text text;
  for (const Value& item : items) text.append(*item.text());
  return runtime.text(std::move(text));
}

Value join_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "join", given, {"d", "attribute"});
  const Text separator =
      parameters.find(0) == nullptr ? Text() : to_text(runtime, parameters.at(0));
  const Keyed joined = keyed(runtime, input, parameters.find(1), Case::sensitive);
  Text text;
  for (std::size_t i = 0; i < joined.keys.size(); ++i) {
    if (i > 0) text.append(separator);
    text.append(to_text(runtime, joined.keys[i]));
    runtime.require_text_size(text.size());
  }
  return runtime.text(std::move(text));
}

Value unique_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "unique", given, {"case_sensitive", "attribute"});
  const Keyed all = keyed(runtime, input, parameters.find(1), case_of(parameters, 0));
  Dict seen;
  List* const kept = runtime.new_list();
  for (std::size_t i = 0; i < all.items.size(); ++i) {
    if (!Dict::can_be_key(all.keys[i])) {
      runtime.fail("'unique' compares strings and numbers, not values of type {}",
                   type_name(all.keys[i]));
    }
    if (seen.find(runtime, all.keys[i]) != nullptr) continue;
    seen.set(runtime, all.keys[i], None{});
    kept->items.push_back(all.items[i]);
  }
  return kept;
}

Value sort_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "sort", given, {"reverse", "case_sensitive", "attribute"});
  Keyed all = keyed(runtime, input, parameters.find(2), case_of(parameters, 1));
  // As in Jinja, keys are lists, so that equal ones need no order: [none, none] can be sorted.
  for (Value& key : all.keys) key = runtime.new_list({key});
  return runtime.new_list(sorted_by(runtime, all.items, all.keys, sort_order(parameters, 0)));
}

Value dictsort_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "dictsort", given, {"case_sensitive", "by", "reverse"});
  const Dict* const dict = input.pointer<Dict>();
  if (dict == nullptr) runtime.fail("a value of type {} is not a dict", type_name(input));
  const std::string_view by = parameters.find(1) == nullptr ? "key" : parameters.text(1).bytes();
  if (by != "key" && by != "value") runtime.fail("'dictsort' sorts by 'key' or 'value'");
  std::vector<Value> keys;
  for (const auto& [key, value] : dict->entries()) {
    keys.push_back(sort_key(runtime, by == "key" ? key : value, case_of(parameters, 0)));
  }
  const Value pairs = pairs_of(runtime, *dict);
  return runtime.new_list(
      sorted_by(runtime, pairs.pointer<List>()->items, keys, sort_order(parameters, 2)));
}

enum class Extreme { least, greatest };

template <Extreme extreme>
Value extreme_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "min", given, {"case_sensitive", "attribute"});
  const Keyed all = keyed(runtime, input, parameters.find(1), case_of(parameters, 0));
  if (all.items.empty()) return Value::undefined("the extreme of no elements");
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.items.size(); ++i) {
    const bool better = extreme == Extreme::least ? less(runtime, all.keys[i], all.keys[best])
                                                  : less(runtime, all.keys[best], all.keys[i]);
    if (better) best = i;
  }
  return all.items[best];
}

Value sum_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "sum", given, {"attribute", "start"});
  Value sum = parameters.find(1) == nullptr ? Value(std::int64_t{0}) : parameters.at(1);
  for (const Value& key : keyed(runtime, input, parameters.find(0), Case::sensitive).keys) {
    sum = apply_binary(runtime, BinaryOperator::add, sum, key);
  }
  return sum;
}

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

// (grouper, list) for each value of an attribute, in the order of the values.
Value groupby_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "groupby", given,
                              {"attribute", "default", "case_sensitive"});
  const std::vector<Value> items = elements_of(runtime, input);
  const Value* const otherwise = parameters.find(1);
  std::vector<Value> keys;
  std::vector<Value> positions;
  for (const Value& item : items) {
    const Value key =
        attribute_path(runtime, item, parameters.at(0),
                       otherwise == nullptr || otherwise->is_none() ? nullptr : otherwise);
    keys.push_back(sort_key(runtime, key, case_of(parameters, 2)));
    positions.emplace_back(static_cast<std::int64_t>(positions.size()));
  }
  List* const groups = runtime.new_list();
  const Value* previous = nullptr;
  for (const Value& position : sorted_by(runtime, positions, keys, SortOrder::ascending)) {
    const auto i = static_cast<std::size_t>(position.integer());
    if (previous == nullptr || !equal(runtime, *previous, keys[i])) {
      const Value grouper = attribute_path(runtime, items[i], parameters.at(0), otherwise);
      List* const group = runtime.new_list({grouper, Value(runtime.new_list())}, ListKind::tuple);
      group->is_group = true;
      groups->items.emplace_back(group);
      previous = &keys[i];
    }
    groups->items.back().pointer<List>()->items[1].pointer<List>()->items.push_back(items[i]);
  }
  return groups;
}

// Lists of a given number of elements each.
Value batch_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "batch", given, {"linecount", "fill_with"});
  parameters.at(0);
  const std::int64_t size = parameters.integer(0, 0);
  List* const batches = runtime.new_list();
  List* current = nullptr;
  for (const Value& item : elements_of(runtime, input)) {
    // As in Jinja, a size below 1 is never reached, but 0 before anything is there.
    if (current == nullptr || std::ssize(current->items) == size) {
      if (current == nullptr && size == 0) batches->items.emplace_back(runtime.new_list());
      current = runtime.new_list();
      batches->items.emplace_back(current);
    }
    current->items.push_back(item);
  }
  const Value* const fill = parameters.find(1);
  if (current != nullptr && fill != nullptr && !fill->is_none()) {
    if (size > std::ssize(current->items)) {
      runtime.count_steps(static_cast<std::size_t>(size) - current->items.size());
      current->items.resize(static_cast<std::size_t>(size), *fill);
    }
  }
  return batches;
}

// So many lists, of which the first ones have one element more.
Value slice_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "slice", given, {"slices", "fill_with"});
  parameters.at(0);
  const std::int64_t count = parameters.integer(0, 0);
  const std::vector<Value> items = elements_of(runtime, input);
  if (count == 0) runtime.fail("'slice' needs a number of slices other than 0");
  const std::int64_t length = std::ssize(items);
  const Value* const fill = parameters.find(1);
  List* const slices = runtime.new_list();
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    runtime.count_steps(1);
    const bool has_extra = i < length % count;
    const std::int64_t end = begin + length / count + (has_extra ? 1 : 0);
    List* const slice =
        runtime.new_list(std::vector<Value>(items.begin() + begin, items.begin() + end));
    if (!has_extra && fill != nullptr && !fill->is_none()) slice->items.push_back(*fill);
    slices->items.emplace_back(slice);
    begin = end;
  }
  return slices;
}

// value.name, but never the item of that name.
Value attr_filter(Runtime& runtime, const Value& input, const Arguments& given) {
  const Parameters parameters(runtime, "attr", given, {"name"});
  const Value name = parameters.at(0);
  if (input.pointer<Dict>() != nullptr &&
      find_method(input, parameters.text(0).bytes()) == nullptr) {
    return Value::undefined(fmt::format("'{}' of a dict", shortened(name.text()->bytes())));
  }
  return attribute_of(runtime, input, name.text()->bytes());
}

constexpr std::array filters_of_lists = {
    Filter{"length", length_filter},
    Filter{"count", length_filter},
    Filter{"list", list_filter},
    Filter{"items", items_filter},
    Filter{"default", default_filter},
    Filter{"d", default_filter},
    Filter{"first", first_filter},
    Filter{"last", last_filter},
    Filter{"reverse", reverse_filter},
    Filter{"join", join_filter},
    Filter{"unique", unique_filter},
    Filter{"sort", sort_filter},
    Filter{"dictsort", dictsort_filter},
    Filter{"min", extreme_filter<Extreme::least>},
    Filter{"max", extreme_filter<Extreme::greatest>},
    Filter{"sum", sum_filter},
    Filter{"map", map_filter},
    Filter{"select", select_filter<Kept::holding>},
    Filter{"reject", select_filter<Kept::others>},
    Filter{"selectattr", select_attribute_filter<Kept::holding>},
    Filter{"rejectattr", select_attribute_filter<Kept::others>},
    Filter{"groupby", groupby_filter},
    Filter{"batch", batch_filter},
    Filter{"slice", slice_filter},
    Filter{"attr", attr_filter},
};

}  // namespace

std::span<const Filter> list_filters() { return filters_of_lists; }

}  // namespace heed::chat
