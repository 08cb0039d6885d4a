#include "chat/operators.h"

#include <cmath>

#include "chat/print.h"

namespace heed::chat {
namespace {

std::string_view symbol(BinaryOperator operation) {
  switch (operation) {
    case BinaryOperator::add: return "+";
    case BinaryOperator::subtract: return "-";
    case BinaryOperator::multiply: return "*";
    case BinaryOperator::divide: return "/";
    case BinaryOperator::floor_divide: return "//";
    case BinaryOperator::modulo: return "%";
    default: return "**";
  }
}

[[noreturn]] void fail_overflow(const Runtime& runtime) {
  runtime.fail("the result of an operation does not fit into 64 bits");
}

std::int64_t whole_power(const Runtime& runtime, std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(result, base, &result)) fail_overflow(runtime);
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow(runtime);
  }
  return result;
}

// Rounded down, with a remainder that has the divisor's sign.
struct Division {
  std::int64_t quotient = 0;
  std::int64_t remainder = 0;
};
Division floor_division(const Runtime& runtime, std::int64_t left, std::int64_t right) {
  if (right == -1) {
    if (__builtin_sub_overflow(std::int64_t{0}, left, &left)) fail_overflow(runtime);
    return {left, 0};
  }
  Division result{left / right, left % right};
  if (result.remainder != 0 && (result.remainder < 0) != (right < 0)) {
    --result.quotient;
    result.remainder += right;
  }
  return result;
}

Value of_integers(const Runtime& runtime, BinaryOperator operation, std::int64_t left,
                  std::int64_t right) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (operation) {
    case BinaryOperator::add: overflow = __builtin_add_overflow(left, right, &result); break;
    case BinaryOperator::subtract: overflow = __builtin_sub_overflow(left, right, &result); break;
    case BinaryOperator::multiply: overflow = __builtin_mul_overflow(left, right, &result); break;
    case BinaryOperator::floor_divide:
      result = floor_division(runtime, left, right).quotient;
      break;
    case BinaryOperator::modulo: result = floor_division(runtime, left, right).remainder; break;
    case BinaryOperator::divide: return static_cast<double>(left) / static_cast<double>(right);
    default:
      if (right < 0) return std::pow(static_cast<double>(left), static_cast<double>(right));
      result = whole_power(runtime, left, right);
  }
  if (overflow) fail_overflow(runtime);
  return result;
}

Value of_reals(BinaryOperator operation, double left, double right) {
  switch (operation) {
    case BinaryOperator::add: return left + right;
    case BinaryOperator::subtract: return left - right;
    case BinaryOperator::multiply: return left * right;
    case BinaryOperator::divide: return left / right;
    case BinaryOperator::floor_divide: return std::floor(left / right);
    case BinaryOperator::modulo: {
      const double remainder = std::fmod(left, right);
      if (remainder == 0) return std::copysign(0.0, right);
      return (remainder < 0) != (right < 0) ? remainder + right : remainder;
    }
    default: return std::pow(left, right);
  }
}

Value of_numbers(const Runtime& runtime, BinaryOperator operation, const Value& left,
                 const Value& right) {
  const bool divides = operation == BinaryOperator::divide ||
                       operation == BinaryOperator::floor_divide ||
                       operation == BinaryOperator::modulo;
  const bool negative_power =
      operation == BinaryOperator::power && left.real() == 0 && right.real() < 0;
  if ((divides && right.real() == 0) || negative_power) runtime.fail("division by zero");
  if (left.is_integer() && right.is_integer()) {
    return of_integers(runtime, operation, left.integer(), right.integer());
  }
  return of_reals(operation, left.real(), right.real());
}

std::size_t repetitions(const Value& count) {
  return count.integer() > 0 ? static_cast<std::size_t>(count.integer()) : 0;
}

// Strings and lists `count` times.
Value repeated(Runtime& runtime, const Value& value, const Value& count) {
  const std::size_t times = repetitions(count);
  if (const Text* text = value.text()) {
    std::size_t size = 0;
    if (__builtin_mul_overflow(text->size(), times, &size)) size = SIZE_MAX;
    runtime.require_text_size(size);
    Text result = text->part(0, 0);
    for (std::size_t i = 0; size > 0 && i < times; ++i) result.append(*text);
    return runtime.text(std::move(result));
  }
  const List& list = *value.pointer<List>();
  std::size_t size = 0;
  if (__builtin_mul_overflow(list.items.size(), times, &size)) size = SIZE_MAX;
  runtime.count_steps(size);
  std::vector<Value> items;
  for (std::size_t i = 0; size > 0 && i < times; ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return runtime.new_list(std::move(items), list.kind);
}

bool repeats(const Value& value, const Value& count) {
  return (value.text() != nullptr || value.pointer<List>() != nullptr) && count.is_integer();
}

// A text that is HTML makes the other one HTML, too.
Value sum_of_texts(Runtime& runtime, const Text& left, const Text& right) {
  runtime.require_text_size(left.size() + right.size());
  const bool is_markup = left.is_markup() || right.is_markup();
  Text sum = is_markup ? html_escaped(runtime, left) : left;
  sum.append(is_markup ? html_escaped(runtime, right) : right);
  return runtime.text(std::move(sum));
}

Value joined(Runtime& runtime, const List& left, const List& right) {
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return runtime.new_list(std::move(items), left.kind);
}

}  // namespace

Value apply_arithmetic(Runtime& runtime, BinaryOperator operation, const Value& left,
                       const Value& right) {
  if (left.is_number() && right.is_number()) return of_numbers(runtime, operation, left, right);
  if (operation == BinaryOperator::add) {
    if (left.text() != nullptr && right.text() != nullptr) {
      return sum_of_texts(runtime, *left.text(), *right.text());
    }
    const List* const first = left.pointer<List>();
    const List* const second = right.pointer<List>();
    if (first != nullptr && second != nullptr && first->kind == second->kind) {
      return joined(runtime, *first, *second);
    }
  }
  if (operation == BinaryOperator::multiply) {
    if (repeats(left, right)) return repeated(runtime, left, right);
    if (repeats(right, left)) return repeated(runtime, right, left);
  }
  if (operation == BinaryOperator::modulo && left.text() != nullptr) {
    const List* const several = right.pointer<List>();
    const bool is_tuple = several != nullptr && several->kind == ListKind::tuple;
    return runtime.text(percent_format(runtime, *left.text(),
                                       is_tuple ? several->items : std::vector{right},
                                       right.pointer<Dict>()));
  }
  runtime.fail("'{}' cannot be applied to values of type {} and {}", symbol(operation),
               type_name(left), type_name(right));
}

Value apply_unary(Runtime& runtime, UnaryOperator operation, const Value& operand) {
  if (operation == UnaryOperator::logical_not) return !truth(operand);
  if (!operand.is_number()) {
    runtime.fail("a value of type {} has no sign", type_name(operand));
  }
  const bool negative = operation == UnaryOperator::negative;
  if (!operand.is_integer()) return negative ? -operand.real() : operand.real();
  if (!negative) return operand.integer();
  return of_integers(runtime, BinaryOperator::subtract, 0, operand.integer());
}

}  // namespace heed::chat
