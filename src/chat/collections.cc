#include "chat/collections.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "chat/operators.h"

namespace heed::chat {

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

std::vector<Value> sorted_by(Runtime& runtime, const std::vector<Value>& items,
                             const std::vector<Value>& keys, bool reverse) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Merge sort stays within its memory whatever the comparison says (NaN has no order).
  std::ranges::stable_sort(order, [&](std::size_t left, std::size_t right) {
    return reverse ? less(runtime, keys[right], keys[left])
                   : less(runtime, keys[left], keys[right]);
  });
  std::vector<Value> sorted;
  for (const std::size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

}  // namespace heed::chat
