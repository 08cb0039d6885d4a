// + - * / // % ** of numbers, and what they mean for strings and lists.
#pragma once

#include "chat/runtime.h"
#include "chat/syntax.h"
#include "chat/value.h"

namespace heed::chat {

// Whole numbers have 64 bits; a larger result is an error.
Value apply_arithmetic(Runtime& runtime, BinaryOperator operation, const Value& left,
                       const Value& right);

// Python's "format" % value, where a tuple is several values; `names` are those of %(name)s.
Text percent_format(Runtime& runtime, const Text& format, const std::vector<Value>& values,
                    const Dict* names = nullptr);

// Python's format.format(…): {0.name[key]!r:>8}.
Text brace_format(Runtime& runtime, const Text& format, const Arguments& arguments);

}  // namespace heed::chat
