#include "base/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <span>

#include "base/error.h"

namespace heed {
namespace {

double read_back(const char* begin, const char* end) {
  double value = 0;
  std::from_chars(begin, end, value);
  return value;
}

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit count_units[] = {{"", 1},    {"k", 1e3}, {"K", 1e3},  {"M", 1e6},
                                {"B", 1e9}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};
constexpr double kibi = 1024;
constexpr Unit size_units[] = {{"", 1},
                               {"B", 1},
                               {"kB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"KiB", kibi},
                               {"MiB", kibi* kibi},
                               {"GiB", kibi* kibi* kibi},
                               {"TiB", kibi* kibi* kibi* kibi}};
constexpr Unit rate_units[] = {
    {"", 1},      {"B", 1},          {"kB", 1e3},       {"MB", 1e6},       {"GB", 1e9},
    {"TB", 1e12}, {"kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8}};
constexpr Unit time_units[] = {{"", 1},      {"s", 1},     {"ms", 1e-3},
                               {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}};
constexpr Unit no_units[] = {{"", 1}};

struct QuantityKind {
  std::span<const Unit> units;
  const char* expected;
};

QuantityKind quantity_kind(Quantity quantity) {
  switch (quantity) {
    case Quantity::count: return {count_units, "a number, such as 3e11, 300B or 1.5T"};
    case Quantity::bytes: return {size_units, "a number of bytes, such as 5e11, 512GB or 64GiB"};
    case Quantity::rate: return {rate_units, "bytes a second, such as 1.25e9, 1.25GB or 10Gbit"};
    case Quantity::time: return {time_units, "a time, such as 5e-5, 50us or 1ms"};
    case Quantity::number: break;
  }
  return {no_units, "a number"};
}

std::string problem_of(const std::string& text, Quantity quantity, double& value) {
  const QuantityKind kind = quantity_kind(quantity);
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (quantity == Quantity::rate && unit.ends_with("/s")) unit.remove_suffix(2);
  while (quantity == Quantity::bytes && unit.starts_with(' ')) unit.remove_prefix(1);
  if (error == std::errc{} && std::isfinite(value) && value >= 0) {
    for (const Unit& each : kind.units) {
      if (each.name != unit) continue;
      value *= each.factor;
      return "";
    }
  }
  return fmt::format("takes {}, not '{}'", kind.expected, text);
}

constexpr std::int64_t max_list = 1 << 20;
constexpr std::int64_t max_index = std::int64_t{1}
                                   << 40;  // in magnitude, so that nothing overflows

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Parses a number at the beginning of `text` and removes it; false if there is none.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

double shortest_decimal(float value) {
  char digits[32];
  return read_back(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

double rounded_decimal(float value, int digits) {
  char text[32];
  return read_back(
      text, std::to_chars(text, std::end(text), value, std::chars_format::general, digits).ptr);
}

double parse_quantity(const std::string& text, Quantity quantity) {
  double value = 0;
  const std::string problem = problem_of(text, quantity, value);
  require(problem.empty(), ErrorCode::invalid_argument, "{}", problem);
  return value;
}

std::string quantity_problem(const std::string& text, Quantity quantity) {
  double value = 0;
  return problem_of(text, quantity, value);
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(without_spaces(text.substr(begin, end - begin)));
    require(!items.back().empty(), ErrorCode::invalid_argument,
            "the list '{}' has an empty item: separate items by single commas", text.substr(0, 80));
    begin = end + 1;
  }
  return items;
}

std::vector<std::int64_t> parse_indices(const std::string& text) {
  std::vector<std::int64_t> indices;
  if (text.empty()) return indices;
  for (const std::string_view part : split_list(text)) {
    std::string_view rest = part;
    std::int64_t first = 0;
    bool is_good = take_number(rest, first);
    std::int64_t last = first;
    if (is_good && rest.starts_with('-')) {
      rest.remove_prefix(1);
      is_good = take_number(rest, last) && first <= last;
    }
    is_good = is_good && rest.empty() && first >= -max_index && last <= max_index;
    require(is_good, ErrorCode::invalid_argument, "'{}' is not a number or a range such as 0-3",
            part.substr(0, 40));
    require(std::ssize(indices) + last - first < max_list, ErrorCode::invalid_argument,
            "the list up to '{}' has more than {} numbers", part, max_list);
    for (std::int64_t index = first; index <= last; ++index) indices.push_back(index);
  }
  return indices;
}

std::int64_t parse_bytes(const std::string& text) {
  constexpr double most = 9e18;  // fits 64 bits
  double bytes = 0;
  const bool is_size = problem_of(text, Quantity::bytes, bytes).empty() && bytes < most;
  require(is_size, ErrorCode::invalid_argument, "'{}' is not a size such as 1GiB or 500MB", text);
  return static_cast<std::int64_t>(bytes);
}

std::string grouped(long long number) {
  std::string digits = std::to_string(std::abs(number));
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, ",");
  return (number < 0 ? "-" : "") + digits;
}

}  // namespace heed
