#include "cli/number_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/numbers.h"

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

using Words = std::vector<std::string>;

void append_items(Words& items, const std::string& word, char values_behind) {
  const std::size_t first = items.size();
  for (const std::string_view part : split_list(word)) {
    const bool continues = values_behind != '\0' && items.size() > first &&
                           part.find(values_behind) == std::string_view::npos;
    if (continues) {
      items.back() += "," + std::string(part);
    } else {
      items.emplace_back(part);
    }
  }
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

Option add_list_option(Command command, const std::string& name, Words& items,
                       const std::string& description, char values_behind) {
  const auto set = [&items, values_behind](const Words& words) {
    items.clear();
    for (const std::string& word : words) append_items(items, word, values_behind);
  };
  return command.add_option_function<Words>(name, set, description)->allow_extra_args(false);
}

Option add_list_option(Command command, const std::string& name, std::string& list,
                       const std::string& description) {
  const auto set = [&list](const Words& words) {
    list.clear();
    for (const std::string& word : words) list += (list.empty() ? "" : ",") + word;
  };
  return command.add_option_function<Words>(name, set, description)->allow_extra_args(false);
}

}  // namespace heed::cli
