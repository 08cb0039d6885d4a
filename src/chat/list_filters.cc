#include <algorithm>
#include <array>

#include "chat/collections.h"
#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/print.h"

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
  return runtime.new_list(sorted_by(runtime, all.items, all.keys, parameters.flag(0, false)));
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
      sorted_by(runtime, pairs.pointer<List>()->items, keys, parameters.flag(2, false)));
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
};

}  // namespace

std::span<const Filter> list_filters() { return filters_of_lists; }

}  // namespace heed::chat
