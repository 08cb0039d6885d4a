// The methods of lists and dictionaries, and what methods a value has.
#include "chat/methods.h"

#include <algorithm>
#include <array>

#include "chat/collections.h"
#include "chat/operators.h"

namespace heed::chat {
namespace {

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

const Method* named(std::span<const Method> methods, std::string_view name) {
  const auto found = std::ranges::find(methods, name, &Method::name);
  return found == methods.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Method> list_methods() { return methods_of_lists; }
std::span<const Method> dict_methods() { return methods_of_dicts; }

const Method* find_method(const Value& value, std::string_view name) {
  if (value.text() != nullptr) {
    const Method* const found = named(search_methods(), name);
    return found != nullptr ? found : named(letter_methods(), name);
  }
  if (value.pointer<Dict>() != nullptr) return named(dict_methods(), name);
  if (const List* const list = value.pointer<List>()) {
    const bool of_tuples = name == "index" || name == "count";
    if (list->kind == ListKind::tuple && !of_tuples) return nullptr;
    return named(list_methods(), name);
  }
  return nullptr;
}

}  // namespace heed::chat
