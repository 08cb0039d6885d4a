// What filters and methods of the same name share.
#pragma once

#include <string_view>

#include "chat/built_in.h"
#include "chat/runtime.h"
#include "chat/value.h"

namespace heed::chat {

// A list of (key, value) tuples.
Value pairs_of(Runtime& runtime, const Dict& dict);

// A negative count: all occurrences. Throws before the result would be too long.
Value replaced(Runtime& runtime, const Text& text, const Text& old, const Text& replacement,
               std::int64_t count);

// item.a.b or item[0].b for "a.b" and "0.b", as the filters do that take an attribute's name.
// `otherwise` takes the place of an attribute that is missing, unless it is null.
Value attribute_path(Runtime& runtime, const Value& item, const Value& path,
                     const Value* otherwise = nullptr);

// The value by which elements are sorted or told apart: texts in lower case unless case counts.
enum class Case { ignored, sensitive };
Case case_of(const Parameters& parameters, std::size_t index);  // of a filter, by its flag
Value sort_key(Runtime& runtime, const Value& value, Case letters);

// Sorts items by their keys, of which there are as many; equal ones keep their order.
std::vector<Value> sorted_by(Runtime& runtime, const std::vector<Value>& items,
                             const std::vector<Value>& keys, bool reverse);

}  // namespace heed::chat
