// Operators, attributes and items of values, as in Python.
#pragma once

#include <string_view>
#include <vector>

#include "chat/syntax.h"
#include "chat/value.h"

namespace heed::chat {

// Throws for an undefined value, with its name.
void require_defined(const Runtime& runtime, const Value& value);

bool truth(const Value& value);
bool equal(Runtime& runtime, const Value& left, const Value& right);
// Throws for types without an order.
bool less(Runtime& runtime, const Value& left, const Value& right);
bool contains(Runtime& runtime, const Value& container, const Value& item);

// All operators but `and` and `or`, which do not always evaluate their right side.
Value apply_binary(Runtime& runtime, BinaryOperator operation, const Value& left,
                   const Value& right);
Value apply_unary(Runtime& runtime, UnaryOperator operation, const Value& operand);

// value.name: an attribute or method, else the item of that name.
Value attribute_of(Runtime& runtime, const Value& value, std::string_view name);
// value[index]: the item, else the attribute or method of that name.
Value item_of(Runtime& runtime, const Value& value, const Value& index);

struct SliceBounds {
  Value start = None{};
  Value stop = None{};
  Value step = None{};
};
Value slice_of(Runtime& runtime, const Value& value, const SliceBounds& bounds);

// The elements of a list, keys of a dictionary, characters of a text; none of an undefined value.
std::vector<Value> elements_of(Runtime& runtime, const Value& value);
// Their number. Throws for a value that has none.
std::size_t length_of(Runtime& runtime, const Value& value);

Value call_value(Runtime& runtime, const Value& callee, const Arguments& arguments);

// + - * / // % ** of numbers, and what they mean for strings and lists. Whole numbers have 64 bits;
// a larger result is an error.
Value apply_arithmetic(Runtime& runtime, BinaryOperator operation, const Value& left,
                       const Value& right);

}  // namespace heed::chat
