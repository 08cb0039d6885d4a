#include "base/quantity.h"

#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "base/error.h"

namespace heed {
namespace {

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
  if (error == std::errc{} && std::isfinite(value) && value >= 0) {
    for (const Unit& each : kind.units) {
      if (each.name != unit) continue;
      value *= each.factor;
      return "";
    }
  }
  return fmt::format("takes {}, not '{}'", kind.expected, text);
}

}  // namespace

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

}  // namespace heed
