// What heed uses of C++20's library and Emscripten's older ones lack (before version 16 of libc++;
// before 20 the first). Given to every source of this target by -include; newer libraries have it
// all.
#pragma once

#include <version>

#if _LIBCPP_VERSION < 200000

#include <charconv>

namespace std {

// Of floating point; those of integers are there.
from_chars_result from_chars(const char* first, const char* last, float& value);
from_chars_result from_chars(const char* first, const char* last, double& value);

}  // namespace std

#endif

#if _LIBCPP_VERSION < 16000

#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// Of floating point, likewise.
to_chars_result to_chars(char* first, char* last, float value);
to_chars_result to_chars(char* first, char* last, double value);
// The shortest digits that read back, in this format: scientific or fixed.
to_chars_result to_chars(char* first, char* last, double value, chars_format format);
// As many digits as `precision` says; general alone.
to_chars_result to_chars(char* first, char* last, double value, chars_format format, int precision);

namespace ranges {

template <class First, class Second>
struct in_in_result {
  First in1;
  Second in2;
};
template <class First, class Second>
using mismatch_result = in_in_result<First, Second>;

template <class In, class Out>
struct in_out_result {
  In in;
  Out out;
};

template <class In, class Function>
struct in_fun_result {
  In in;
  Function fun;
};

namespace older {

// Compares, or asks, what a projection makes of an element.
template <class Function, class Projection>
auto projected(Function& function, Projection& projection) {
  return [&](auto&& value) -> decltype(auto) {
    return std::invoke(function, std::invoke(projection, std::forward<decltype(value)>(value)));
  };
}
template <class Compare, class Projection>
auto comparing(Compare& compare, Projection& projection) {
  return [&](auto&& a, auto&& b) -> bool {
    return std::invoke(compare, std::invoke(projection, std::forward<decltype(a)>(a)),
                       std::invoke(projection, std::forward<decltype(b)>(b)));
  };
}
template <class Value, class Projection>
auto equalling(const Value& value, Projection& projection) {
  return [&](auto&& each) -> bool {
    return std::invoke(projection, std::forward<decltype(each)>(each)) == value;
  };
}

template <class T>
concept iterator = std::input_or_output_iterator<T>;
template <class T>
concept range = std::ranges::range<T>;

}  // namespace older

namespace older {

// clang-format off
template <class I, class F, class P = std::identity>
constexpr bool all(I first, I last, F f, P p = {}) { return std::all_of(first, last, projected(f, p)); }
template <class I, class F, class P = std::identity>
constexpr bool any(I first, I last, F f, P p = {}) { return std::any_of(first, last, projected(f, p)); }
template <class I, class F, class P = std::identity>
constexpr bool none(I first, I last, F f, P p = {}) { return std::none_of(first, last, projected(f, p)); }
template <class I, class T, class P = std::identity>
constexpr I find_value(I first, I last, const T& value, P p = {}) { return std::find_if(first, last, equalling(value, p)); }
template <class I, class F, class P = std::identity>
constexpr I find_where(I first, I last, F f, P p = {}) { return std::find_if(first, last, projected(f, p)); }
template <class I, class F, class P = std::identity>
constexpr I find_where_not(I first, I last, F f, P p = {}) { return std::find_if_not(first, last, projected(f, p)); }
template <class I, class T, class P = std::identity>
constexpr auto count_value(I first, I last, const T& value, P p = {}) { return std::count_if(first, last, equalling(value, p)); }
template <class I, class F, class P = std::identity>
constexpr auto count_where(I first, I last, F f, P p = {}) { return std::count_if(first, last, projected(f, p)); }
template <class I, class C = std::ranges::less, class P = std::identity>
constexpr I greatest(I first, I last, C c = {}, P p = {}) { return std::max_element(first, last, comparing(c, p)); }
template <class I, class C = std::ranges::less, class P = std::identity>
constexpr I least(I first, I last, C c = {}, P p = {}) { return std::min_element(first, last, comparing(c, p)); }
template <class I, class C = std::ranges::less, class P = std::identity>
constexpr I sorted(I first, I last, C c = {}, P p = {}) { std::sort(first, last, comparing(c, p)); return last; }
template <class I, class C = std::ranges::less, class P = std::identity>
constexpr I stably_sorted(I first, I last, C c = {}, P p = {}) { std::stable_sort(first, last, comparing(c, p)); return last; }
template <class I, class C = std::ranges::less, class P = std::identity>
constexpr bool in_order(I first, I last, C c = {}, P p = {}) { return std::is_sorted(first, last, comparing(c, p)); }
template <class I, class T, class C = std::ranges::less, class P = std::identity>
constexpr I lower(I first, I last, const T& value, C c = {}, P p = {}) {
  return std::lower_bound(first, last, value, [&](auto&& each, const T& bound) -> bool {
    return std::invoke(c, std::invoke(p, std::forward<decltype(each)>(each)), bound);
  });
}
template <class I, class T, class C = std::ranges::less, class P = std::identity>
constexpr I upper(I first, I last, const T& value, C c = {}, P p = {}) {
  return std::upper_bound(first, last, value, [&](const T& bound, auto&& each) -> bool {
    return std::invoke(c, bound, std::invoke(p, std::forward<decltype(each)>(each)));
  });
}
template <class I, class T, class C = std::ranges::less, class P = std::identity>
constexpr bool holds(I first, I last, const T& value, C c = {}, P p = {}) {
  const I at = older::lower(first, last, value, c, p);
  return at != last && !std::invoke(c, value, std::invoke(p, *at));
}
template <class I, class F, class P = std::identity>
constexpr I parted(I first, I last, F f, P p = {}) { return std::partition_point(first, last, projected(f, p)); }
template <class I>
constexpr I reversed(I first, I last) { std::reverse(first, last); return last; }
template <class I, class T>
constexpr I filled(I first, I last, const T& value) { std::fill(first, last, value); return last; }
template <class I, class T, class U>
constexpr I replaced(I first, I last, const T& old, const U& value) { std::replace(first, last, old, value); return last; }
template <class I, class F, class U>
constexpr I replaced_where(I first, I last, F f, const U& value) { std::replace_if(first, last, f, value); return last; }
template <class I, class F, class P = std::identity>
constexpr in_fun_result<I, F> each(I first, I last, F f, P p = {}) {
  for (; first != last; ++first) std::invoke(f, std::invoke(p, *first));
  return {first, std::move(f)};
}
template <class I, class O>
constexpr in_out_result<I, O> copied(I first, I last, O to) { return {last, std::copy(first, last, to)}; }
template <class I, class O>
constexpr in_out_result<I, O> moved(I first, I last, O to) { return {last, std::move(first, last, to)}; }
template <class I, class O, class F, class P = std::identity>
constexpr in_out_result<I, O> copied_without(I first, I last, O to, F f, P p = {}) {
  return {last, std::remove_copy_if(first, last, to, projected(f, p))};
}
template <class I, class C = std::ranges::less, class P = std::identity>
constexpr I sorted_till(I first, I middle, I last, C c = {}, P p = {}) { std::partial_sort(first, middle, last, comparing(c, p)); return last; }
template <class I, class C = std::ranges::less, class P = std::identity>
constexpr I nth(I first, I at, I last, C c = {}, P p = {}) { std::nth_element(first, at, last, comparing(c, p)); return last; }
// clang-format on

}  // namespace older

// For a range, and for the two ends of one. Parameters behind them have their types' defaults, so
// that {} may stand for one.
#define HEED_OLDER_RANGE(name, function, types, parameters, arguments)             \
  struct name##_of {                                                               \
    template <older::iterator I, HEED_OLDER_LIST types>                            \
    constexpr auto operator()(I first, I last, HEED_OLDER_LIST parameters) const { \
      return function(first, last, HEED_OLDER_LIST arguments);                     \
    }                                                                              \
    template <older::range R, HEED_OLDER_LIST types>                               \
    constexpr auto operator()(R&& range, HEED_OLDER_LIST parameters) const {       \
      return function(std::ranges::begin(range), std::ranges::end(range),          \
                      HEED_OLDER_LIST arguments);                                  \
    }                                                                              \
  };                                                                               \
  inline constexpr name##_of name{};
#define HEED_OLDER_LIST(...) __VA_ARGS__
#define HEED_OLDER_ASKING(name, function) \
  HEED_OLDER_RANGE(name, function, (class F, class P = std::identity), (F f, P p = {}), (f, p))
#define HEED_OLDER_OF_VALUE(name, function)                                                        \
  HEED_OLDER_RANGE(name, function, (class T, class P = std::identity), (const T& value, P p = {}), \
                   (value, p))
#define HEED_OLDER_ORDERING(name, function)                                                \
  HEED_OLDER_RANGE(name, function, (class C = std::ranges::less, class P = std::identity), \
                   (C c = {}, P p = {}), (c, p))
#define HEED_OLDER_SEARCHING(name, function)                                        \
  HEED_OLDER_RANGE(name, function,                                                  \
                   (class T, class C = std::ranges::less, class P = std::identity), \
                   (const T& value, C c = {}, P p = {}), (value, c, p))

HEED_OLDER_ASKING(all_of, older::all)
HEED_OLDER_ASKING(any_of, older::any)
HEED_OLDER_ASKING(none_of, older::none)
HEED_OLDER_ASKING(find_if, older::find_where)
HEED_OLDER_ASKING(find_if_not, older::find_where_not)
HEED_OLDER_ASKING(count_if, older::count_where)
HEED_OLDER_ASKING(partition_point, older::parted)
HEED_OLDER_ASKING(for_each, older::each)
HEED_OLDER_OF_VALUE(find, older::find_value)
HEED_OLDER_OF_VALUE(count, older::count_value)
HEED_OLDER_ORDERING(max_element, older::greatest)
HEED_OLDER_ORDERING(min_element, older::least)
HEED_OLDER_ORDERING(sort, older::sorted)
HEED_OLDER_ORDERING(stable_sort, older::stably_sorted)
HEED_OLDER_ORDERING(is_sorted, older::in_order)
HEED_OLDER_SEARCHING(lower_bound, older::lower)
HEED_OLDER_SEARCHING(upper_bound, older::upper)
HEED_OLDER_SEARCHING(binary_search, older::holds)
HEED_OLDER_RANGE(fill, older::filled, (class T), (const T& value), (value))
HEED_OLDER_RANGE(replace, older::replaced, (class T, class U), (const T& old, const U& value),
                 (old, value))
HEED_OLDER_RANGE(replace_if, older::replaced_where, (class F, class U), (F f, const U& value),
                 (f, value))
HEED_OLDER_RANGE(copy, older::copied, (class O), (O to), (to))
HEED_OLDER_RANGE(move, older::moved, (class O), (O to), (to))
HEED_OLDER_RANGE(remove_copy_if, older::copied_without, (class O, class F, class P = std::identity),
                 (O to, F f, P p = {}), (to, f, p))
#undef HEED_OLDER_ASKING
#undef HEED_OLDER_OF_VALUE
#undef HEED_OLDER_ORDERING
#undef HEED_OLDER_SEARCHING
#undef HEED_OLDER_RANGE
#undef HEED_OLDER_LIST

struct reverse_of {
  template <older::iterator I>
  constexpr I operator()(I first, I last) const {
    return older::reversed(first, last);
  }
  template <older::range R>
  constexpr auto operator()(R&& range) const {
    return older::reversed(std::ranges::begin(range), std::ranges::end(range));
  }
};
inline constexpr reverse_of reverse{};

// For a range, and what is within it.
#define HEED_OLDER_RANGE_AT(name, function)                                            \
  struct name##_of {                                                                   \
    template <older::iterator I, class C = std::ranges::less, class P = std::identity> \
    constexpr auto operator()(I first, I at, I last, C c = {}, P p = {}) const {       \
      return function(first, at, last, c, p);                                          \
    }                                                                                  \
    template <older::range R, older::iterator I, class C = std::ranges::less,          \
              class P = std::identity>                                                 \
    constexpr auto operator()(R&& range, I at, C c = {}, P p = {}) const {             \
      return function(std::ranges::begin(range), at, std::ranges::end(range), c, p);   \
    }                                                                                  \
  };                                                                                   \
  inline constexpr name##_of name{};

HEED_OLDER_RANGE_AT(partial_sort, older::sorted_till)
HEED_OLDER_RANGE_AT(nth_element, older::nth)
#undef HEED_OLDER_RANGE_AT

struct transform_of {
  template <older::range R, older::iterator O, class F, class P = std::identity>
  constexpr auto operator()(R&& range, O to, F f, P p = {}) const {
    const auto last = std::ranges::end(range);
    const O written = std::transform(std::ranges::begin(range), last, to, older::projected(f, p));
    return in_out_result<std::remove_const_t<decltype(last)>, O>{last, written};
  }
  template <older::range R, older::range S, older::iterator O, class F>
  constexpr auto operator()(R&& range, S&& other, O to, F f) const {
    auto first = std::ranges::begin(range);
    auto second = std::ranges::begin(other);
    for (; first != std::ranges::end(range) && second != std::ranges::end(other);
         ++first, ++second) {
      *to++ = std::invoke(f, *first, *second);
    }
    return to;
  }
};
inline constexpr transform_of transform{};

struct mismatch_of {
  template <older::range R, older::range S>
  constexpr auto operator()(R&& range, S&& other) const {
    const auto [first, second] = std::mismatch(std::ranges::begin(range), std::ranges::end(range),
                                               std::ranges::begin(other), std::ranges::end(other));
    return mismatch_result<std::remove_const_t<decltype(first)>,
                           std::remove_const_t<decltype(second)>>{first, second};
  }
};
inline constexpr mismatch_of mismatch{};

struct equal_of {
  template <older::range R, older::range S, class C = std::ranges::equal_to>
  constexpr bool operator()(R&& range, S&& other, C compare = {}) const {
    return std::equal(std::ranges::begin(range), std::ranges::end(range), std::ranges::begin(other),
                      std::ranges::end(other), compare);
  }
};
inline constexpr equal_of equal{};

// Of two values, of a list or of a range.
#define HEED_OLDER_EXTREME(name, element, first_wins)                                       \
  struct name##_of {                                                                        \
    template <class T, class C = std::ranges::less>                                         \
    constexpr const T& operator()(const T& a, const T& b, C compare = {}) const {           \
      return first_wins ? a : b;                                                            \
    }                                                                                       \
    template <class T, class C = std::ranges::less, class P = std::identity>                \
    constexpr T operator()(std::initializer_list<T> list, C compare = {}, P p = {}) const { \
      return *element(list, compare, p);                                                    \
    }                                                                                       \
    template <older::range R, class C = std::ranges::less, class P = std::identity>         \
    constexpr auto operator()(R&& range, C compare = {}, P p = {}) const {                  \
      return *element(range, compare, p);                                                   \
    }                                                                                       \
  };                                                                                        \
  inline constexpr name##_of name{};

HEED_OLDER_EXTREME(max, max_element, !std::invoke(compare, a, b))
HEED_OLDER_EXTREME(min, min_element, !std::invoke(compare, b, a))
#undef HEED_OLDER_EXTREME

}  // namespace ranges
}  // namespace std

#endif
