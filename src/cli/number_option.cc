#include "cli/number_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

namespace heed::cli {
namespace {

// The number that the whole of a text is; none for any other text.
template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || next != end) return std::nullopt;
  return value;
}

Check seconds(bool (*holds)(double), const char* expected) {
  const auto problem = [holds, expected](const std::string& text) {
    const std::optional<double> value = number_of<double>(text);
    return value && std::isfinite(*value) && holds(*value)
               ? std::string()
               : fmt::format("takes a number of seconds, {}, not '{}'", expected, text);
  };
  return problem;
}

}  // namespace

Check between(std::uint64_t min, std::uint64_t max) {
  const auto problem = [min, max](const std::string& text) {
    const std::optional<std::uint64_t> value = number_of<std::uint64_t>(text);
    if (value && *value >= min && *value <= max) return std::string();
    const bool has_end = max < std::numeric_limits<std::int64_t>::max();
    const std::string range =
        has_end ? fmt::format("from {} to {}", min, max) : fmt::format("of at least {}", min);
    return fmt::format("takes a whole number {}, not '{}'", range, text);
  };
  return problem;
}

Check at_least(std::uint64_t min) { return between(min, std::numeric_limits<std::int64_t>::max()); }

Check any_seed() { return between(0, std::numeric_limits<std::uint64_t>::max()); }

Check seconds_above_zero() {
  return seconds([](double value) { return value > 0; }, "more than 0");
}

Check seconds_from_zero() {
  return seconds([](double value) { return value >= 0; }, "0 or more");
}

}  // namespace heed::cli
