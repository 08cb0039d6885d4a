#include "chat/operators.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "chat/built_in.h"
#include "chat/value.h"

namespace heed::chat {
namespace {

bool equal_at(Runtime& runtime, const Value& left, const Value& right, int depth);

bool equal_lists(Runtime& runtime, const List& left, const List& right, int depth) {
  if (&left == &right) return true;
  if (left.kind != right.kind || left.items.size() != right.items.size()) return false;
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    if (!equal_at(runtime, left.items[i], right.items[i], depth + 1)) return false;
  }
  return true;
}

bool equal_dicts(Runtime& runtime, const Dict& left, const Dict& right, int depth) {
  if (&left == &right) return true;
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& entry : left.entries()) {
    const Value* const other = right.find(runtime, entry.first);
    if (other == nullptr || !equal_at(runtime, entry.second, *other, depth + 1)) return false;
  }
  return true;
}

bool equal_at(Runtime& runtime, const Value& left, const Value& right, int depth) {
  require_value_depth(runtime, depth);
  runtime.count_steps(1);
  if (left.is_number() && right.is_number()) {
    if (left.is_integer() && right.is_integer()) return left.integer() == right.integer();
    return left.real() == right.real();
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    if (left.text()->size() != right.text()->size()) return false;
    runtime.count_read(left.text()->size());
    return left.text()->bytes() == right.text()->bytes();
  }
  const List* const lists[2] = {left.pointer<List>(), right.pointer<List>()};
  if (lists[0] != nullptr && lists[1] != nullptr) {
    return equal_lists(runtime, *lists[0], *lists[1], depth);
  }
  const Dict* const dicts[2] = {left.pointer<Dict>(), right.pointer<Dict>()};
  if (dicts[0] != nullptr && dicts[1] != nullptr) {
    return equal_dicts(runtime, *dicts[0], *dicts[1], depth);
  }
  if (left.is_undefined() && right.is_undefined()) return true;
  if (left.is_none() && right.is_none()) return true;
  const auto same = [&](auto* pointer) { return pointer != nullptr; };
  if (same(left.pointer<Namespace>()))
    return left.pointer<Namespace>() == right.pointer<Namespace>();
  if (same(left.pointer<Loop>())) return left.pointer<Loop>() == right.pointer<Loop>();
  if (same(left.pointer<Cycler>())) return left.pointer<Cycler>() == right.pointer<Cycler>();
  if (same(left.pointer<Callable>())) return left.pointer<Callable>() == right.pointer<Callable>();
  return false;
}

bool less_at(Runtime& runtime, const Value& left, const Value& right, int depth) {
  require_value_depth(runtime, depth);
  runtime.count_steps(1);
  if (left.is_number() && right.is_number()) {
    if (left.is_integer() && right.is_integer()) return left.integer() < right.integer();
    return left.real() < right.real();
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    runtime.count_read(std::min(left.text()->size(), right.text()->size()));
    return left.text()->bytes() < right.text()->bytes();
  }
  const List* const first = left.pointer<List>();
  const List* const second = right.pointer<List>();
  if (first == nullptr || second == nullptr || first->kind != second->kind) {
    runtime.fail("a value of type {} and one of type {} have no order", type_name(left),
                 type_name(right));
  }
  const std::size_t common = std::min(first->items.size(), second->items.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (equal_at(runtime, first->items[i], second->items[i], depth + 1)) continue;
    return less_at(runtime, first->items[i], second->items[i], depth + 1);
  }
  return first->items.size() < second->items.size();
}

Value loop_attribute(Runtime& runtime, Loop& loop, std::string_view name) {
  const auto number = [](std::size_t value) { return Value(static_cast<std::int64_t>(value)); };
  const std::size_t length = loop.items.size();
  const std::size_t index = loop.index;
  if (name == "index") return number(index + 1);
  if (name == "index0") return number(index);
  if (name == "revindex") return number(length - index);
  if (name == "revindex0") return number(length - index - 1);
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == length;
  if (name == "length") return number(length);
  if (name == "depth") return std::int64_t{loop.depth} + 1;
  if (name == "depth0") return std::int64_t{loop.depth};
  if (name == "previtem" && index > 0) return loop.items[index - 1];
  if (name == "nextitem" && index + 1 < length) return loop.items[index + 1];
  if (name != "cycle" && name != "changed")
    return Value::undefined(fmt::format("'loop.{}'", shortened(name)));
  const bool cycles = name == "cycle";
  return runtime.new_callable(std::string(name), [&runtime, &loop, cycles](const Arguments& given) {
    if (cycles) {
      if (given.positional.empty()) runtime.fail("loop.cycle() needs values");
      return given.positional[loop.index % given.positional.size()];
    }
    const Value now = runtime.new_list(given.positional, ListKind::tuple);
    const bool changed = !equal(runtime, now, loop.changed);
    loop.changed = now;
    return Value(changed);
  });
}

Value cycler_attribute(Runtime& runtime, Cycler& cycler, std::string_view name) {
  if (name == "current") return cycler.items[cycler.position];
  if (name != "next" && name != "reset") {
    return Value::undefined(fmt::format("'{}' of a cycler", shortened(name)));
  }
  const bool resets = name == "reset";
  return runtime.new_callable(std::string(name),
                              [&runtime, &cycler, resets](const Arguments& given) {
                                if (!given.positional.empty() || !given.named.empty()) {
                                  runtime.fail("the functions of a cycler take no arguments");
                                }
                                const std::size_t position = std::exchange(cycler.position, 0);
                                if (resets) return Value(None{});
                                cycler.position = (position + 1) % cycler.items.size();
                                return cycler.items[position];
                              });
}

Value missing(const Value& value, std::string_view name) {
  return Value::undefined(
      fmt::format("'{}' of a value of type {}", shortened(name), type_name(value)));
}

// An attribute that is not an item.
std::optional<Value> own_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (Loop* const loop = value.pointer<Loop>()) return loop_attribute(runtime, *loop, name);
  if (const Namespace* const names = value.pointer<Namespace>()) {
    const Value* const found = names->attributes.find_name(runtime, name);
    if (found != nullptr) return *found;
    return std::nullopt;
  }
  if (Cycler* const cycler = value.pointer<Cycler>()) {
    return cycler_attribute(runtime, *cycler, name);
  }
  if (const List* const list = value.pointer<List>(); list != nullptr && list->is_group) {
    if (name == "grouper") return list->items[0];
    if (name == "list") return list->items[1];
  }
  const Method* const method = find_method(value, name);
  if (method == nullptr) return std::nullopt;
  return runtime.new_callable(std::string(name), [&runtime, value, method](const Arguments& given) {
    return method->call(runtime, value, given);
  });
}

// The element of that index, counted from the end if it is negative.
std::optional<std::size_t> element_index(std::int64_t index, std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  if (index < -length || index >= length) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + length : index);
}

std::optional<Value> element(Runtime& runtime, const Value& value, std::int64_t index) {
  if (const List* const list = value.pointer<List>()) {
    const auto found = element_index(index, list->items.size());
    if (found) return list->items[*found];
  } else if (const Text* const text = value.text()) {
    runtime.count_read(text->size());
    const auto found = element_index(index, character_count(text->bytes()));
    if (found) {
      const std::size_t begin = offset_after(text->bytes(), 0, *found);
      return runtime.text(text->part(begin, character_size(text->bytes(), begin)));
    }
  }
  return std::nullopt;
}

// Where a slice begins and ends, as in Python.
struct SliceRange {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;
};

SliceRange slice_range(const Runtime& runtime, const SliceBounds& bounds, std::size_t size) {
  const auto number = [&](const Value& value, std::int64_t otherwise) {
    if (value.is_none()) return otherwise;
    if (!value.is_integer()) runtime.fail("a slice has a bound of type {}", type_name(value));
    return value.integer();
  };
  const auto length = static_cast<std::int64_t>(size);
  const std::int64_t step = number(bounds.step, 1);
  if (step == 0) runtime.fail("the step of a slice is 0");
  const std::int64_t least = step > 0 ? 0 : -1;
  const std::int64_t most = step > 0 ? length : length - 1;
  const auto bound = [&](const Value& value, std::int64_t otherwise) {
    if (value.is_none()) return otherwise;
    std::int64_t position = number(value, 0);
    if (position < 0) position = position < -length ? least : position + length;
    return std::clamp(position, least, most);
  };
  return {bound(bounds.start, step > 0 ? least : most), bound(bounds.stop, step > 0 ? most : least),
          step};
}

// The elements that a slice takes, in its order.
std::vector<std::size_t> sliced(const SliceRange& range) {
  std::vector<std::size_t> taken;
  for (std::int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop;) {
    taken.push_back(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, range.step, &i)) break;
  }
  return taken;
}

Text slice_of_text(const Runtime& runtime, const Text& text, const SliceBounds& bounds) {
  const std::string_view bytes = text.bytes();
  const SliceRange range = slice_range(runtime, bounds, character_count(bytes));
  if (range.step == 1) {
    if (range.start >= range.stop) return text.part(0, 0);
    const std::size_t begin = offset_after(bytes, 0, static_cast<std::size_t>(range.start));
    const auto count = static_cast<std::size_t>(range.stop - range.start);
    return text.part(begin, offset_after(bytes, begin, count) - begin);
  }
  const auto offsets = character_offsets(bytes);
  Text result = text.part(0, 0);
  for (const std::size_t i : sliced(range)) {
    result.append(text, offsets[i], offsets[i + 1] - offsets[i]);
  }
  return result;
}

}  // namespace

void require_defined(const Runtime& runtime, const Value& value) {
  if (!value.is_undefined()) return;
  const auto& what = value.get_if<Undefined>()->what;
  runtime.fail("{} is undefined", what == nullptr ? "a value" : *what);
}

bool truth(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is_number()) return value.real() != 0;
  if (const Text* text = value.text()) return !text->empty();
  if (const List* list = value.pointer<List>()) return !list->items.empty();
  if (const Dict* dict = value.pointer<Dict>()) return !dict->entries().empty();
  return true;
}

bool equal(Runtime& runtime, const Value& left, const Value& right) {
  return equal_at(runtime, left, right, 0);
}

bool less(Runtime& runtime, const Value& left, const Value& right) {
  return less_at(runtime, left, right, 0);
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (const Text* text = container.text()) {
    if (item.text() == nullptr) {
      runtime.fail("only a string can be in a string, not a value of type {}", type_name(item));
    }
    runtime.count_read(text->size() + item.text()->size());
    return find_text(text->bytes(), item.text()->bytes()) != std::string_view::npos;
  }
  if (const Dict* dict = container.pointer<Dict>()) return dict->find(runtime, item) != nullptr;
  if (const List* list = container.pointer<List>()) {
    return std::ranges::any_of(list->items,
                               [&](const Value& value) { return equal(runtime, value, item); });
  }
  if (!container.is_undefined()) {
    runtime.fail("'in' needs a string, list or dictionary, not a value of type {}",
                 type_name(container));
  }
  return false;
}

Value apply_binary(Runtime& runtime, BinaryOperator operation, const Value& left,
                   const Value& right) {
  switch (operation) {
    case BinaryOperator::equal: return equal(runtime, left, right);
    case BinaryOperator::not_equal: return !equal(runtime, left, right);
    case BinaryOperator::contained: return contains(runtime, right, left);
    case BinaryOperator::not_contained: return !contains(runtime, right, left);
    default: break;
  }
  require_defined(runtime, left);
  require_defined(runtime, right);
  switch (operation) {
    case BinaryOperator::less: return less(runtime, left, right);
    case BinaryOperator::greater: return less(runtime, right, left);
    case BinaryOperator::less_equal:
      return less(runtime, left, right) || equal(runtime, left, right);
    case BinaryOperator::greater_equal:
      return less(runtime, right, left) || equal(runtime, left, right);
    default: return apply_arithmetic(runtime, operation, left, right);
  }
}

Value attribute_of(Runtime& runtime, const Value& value, std::string_view name) {
  require_defined(runtime, value);
  if (auto attribute = own_attribute(runtime, value, name)) return *attribute;
  if (const Dict* dict = value.pointer<Dict>()) {
    if (const Value* found = dict->find_name(runtime, name)) return *found;
  }
  return missing(value, name);
}

Value item_of(Runtime& runtime, const Value& value, const Value& index) {
  require_defined(runtime, value);
  if (const Dict* dict = value.pointer<Dict>()) {
    if (const Value* found = dict->find(runtime, index)) return *found;
  } else if (index.is_integer()) {
    if (auto found = element(runtime, value, index.integer())) return *found;
  }
  if (const Text* name = index.text()) {
    if (auto attribute = own_attribute(runtime, value, name->bytes())) return *attribute;
    return missing(value, name->bytes());
  }
  return missing(value, index.is_integer() ? std::to_string(index.integer()) : "item");
}

Value slice_of(Runtime& runtime, const Value& value, const SliceBounds& bounds) {
  require_defined(runtime, value);
  if (const List* const list = value.pointer<List>()) {
    const auto taken = sliced(slice_range(runtime, bounds, list->items.size()));
    std::vector<Value> items;
    for (const std::size_t i : taken) items.push_back(list->items[i]);
    return runtime.new_list(std::move(items), list->kind);
  }
  const Text* const text = value.text();
  if (text == nullptr) runtime.fail("a value of type {} cannot be sliced", type_name(value));
  runtime.count_read(text->size());
  return runtime.text(slice_of_text(runtime, *text, bounds));
}

std::vector<Value> elements_of(Runtime& runtime, const Value& value) {
  std::vector<Value> elements;
  if (const List* list = value.pointer<List>()) {
    runtime.count_steps(list->items.size());
    elements = list->items;
  } else if (const Dict* dict = value.pointer<Dict>()) {
    runtime.count_steps(dict->entries().size());
    for (const auto& entry : dict->entries()) elements.push_back(entry.first);
  } else if (const Text* text = value.text()) {
    const std::string_view bytes = text->bytes();
    for (std::size_t i = 0; i < bytes.size(); i += character_size(bytes, i)) {
      runtime.count_steps(1);
      elements.push_back(runtime.text(text->part(i, character_size(bytes, i))));
    }
  } else if (!value.is_undefined()) {
    runtime.fail("a value of type {} has no elements", type_name(value));
  }
  return elements;
}

std::size_t length_of(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) return 0;
  if (const List* list = value.pointer<List>()) return list->items.size();
  if (const Dict* dict = value.pointer<Dict>()) return dict->entries().size();
  if (const Text* text = value.text()) {
    runtime.count_read(text->size());
    return character_count(text->bytes());
  }
  runtime.fail("a value of type {} has no length", type_name(value));
}

Value call_value(Runtime& runtime, const Value& callee, const Arguments& arguments) {
  require_defined(runtime, callee);
  if (const Loop* const loop = callee.pointer<Loop>()) {
    if (loop->recurse == nullptr || arguments.positional.size() != 1 || !arguments.named.empty()) {
      runtime.fail("loop() needs a 'recursive' for, and takes the elements of the next level");
    }
    return loop->recurse(arguments.positional[0]);
  }
  const Callable* const callable = callee.pointer<Callable>();
  if (callable == nullptr) {
    runtime.fail("a value of type {} cannot be called", type_name(callee));
  }
  return callable->call(arguments);
}

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
