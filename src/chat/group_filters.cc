// Filters that divide lists into lists: groupby, batch and slice.
#include <array>

#include "chat/collections.h"
#include "chat/filters.h"
#include "chat/operators.h"

namespace heed::chat {
namespace {

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
  for (const Value& position : sorted_by(runtime, positions, keys, false)) {
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

// Lists of so many elements each.
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

constexpr std::array filters_of_groups = {
    Filter{"groupby", groupby_filter},
    Filter{"batch", batch_filter},
    Filter{"slice", slice_filter},
    Filter{"attr", attr_filter},
};

}  // namespace

std::span<const Filter> group_filters() { return filters_of_groups; }

}  // namespace heed::chat
