#include "cli/arguments.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/numbers.h"

namespace heed::cli {

Check one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    const auto others = std::span(words).first(words.size() - 1);
    return fmt::format("takes {}{}{}, not '{}'", fmt::join(others, ", "),
                       others.empty() ? "" : " or ", words.back(), text);
  };
}

Option Option::check(Check check) {
  option_->check(CLI::Validator(std::move(check), ""));
  return *this;
}

Option Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option Option::description(const std::string& text) {
  option_->description(text);
  return *this;
}

Option Option::group(const std::string& name) {
  option_->group(name);
  return *this;
}

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::capture_default_str() {
  option_->capture_default_str();
  return *this;
}

Option Option::default_str(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option Option::expected(int count) {
  option_->expected(count);
  return *this;
}

Option Option::expected(int min, int max) {
  option_->expected(min, max);
  return *this;
}

Option Option::delimiter(char delimiter) {
  option_->delimiter(delimiter);
  return *this;
}

Option Option::refuse_extra_args() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::take_all() {
  option_->take_all();
  return *this;
}

Option Option::envname(const std::string& name) {
  option_->envname(name);
  return *this;
}

Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(Option other) {
  option_->needs(other.option_);
  return *this;
}

namespace {

// The whole number that an option of type T holds, if it holds any.
template <class T>
struct WholeNumber {
  using type = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, T, void>;
};
template <class T>
struct WholeNumber<std::optional<T>> : WholeNumber<T> {};
template <class T>
struct WholeNumber<std::vector<T>> : WholeNumber<T> {};

// CLI11 takes a number beyond its type's range for the largest one.
template <class Integer>
std::string range_problem(const std::string& text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc::result_out_of_range
             ? fmt::format("takes a smaller number: '{}' is out of range", text)
             : std::string();
}

}  // namespace

template <class T>
Option Command::add_option(const std::string& names, T& value, const std::string& description) {
  const Option option(app_->add_option(names, value, description));
  using Integer = typename WholeNumber<T>::type;
  if constexpr (!std::is_void_v<Integer>) Option(option).check(range_problem<Integer>);
  return option;
}

template <class T>
Option Command::add_option_function(const std::string& names,
                                    const std::function<void(const T&)>& use,
                                    const std::string& description) {
  return Option(app_->add_option_function<T>(names, use, description));
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& description) {
  return Option(app_->add_flag(names, value, description));
}

Option Command::add_flag_function(const std::string& names, const std::function<void()>& use,
                                  const std::string& description) {
  return Option(app_->add_flag_callback(names, use, description));
}

Command Command::add_subcommand(const std::string& name, const std::string& description) {
  return Command(app_->add_subcommand(name, description));
}

Command Command::get_subcommand(const std::string& name) {
  return Command(app_->get_subcommand(name));
}

Option Command::get_option(const std::string& name) { return Option(app_->get_option(name)); }

Command Command::require_subcommand(int count) {
  app_->require_subcommand(count);
  return *this;
}

Command Command::require_subcommand(int min, int max) {
  app_->require_subcommand(static_cast<std::size_t>(min), static_cast<std::size_t>(max));
  return *this;
}

bool Command::has_parsed_subcommand() const { return !app_->get_subcommands().empty(); }

Command Command::callback(std::function<void()> run) {
  app_->callback(std::move(run));
  return *this;
}

Command Command::footer(const std::string& text) {
  app_->footer(text);
  return *this;
}

std::size_t Command::count(const std::string& option) const { return app_->count(option); }

Option Command::help_option() { return Option(app_->get_help_ptr()); }

// What options hold.
#define HEED_OPTION_TYPE(...)                                                                \
  template Option Command::add_option(const std::string&, __VA_ARGS__&, const std::string&); \
  template Option Command::add_option_function(                                              \
      const std::string&, const std::function<void(const __VA_ARGS__&)>&, const std::string&)

HEED_OPTION_TYPE(bool);
HEED_OPTION_TYPE(int);
HEED_OPTION_TYPE(std::int64_t);
HEED_OPTION_TYPE(std::uint64_t);
HEED_OPTION_TYPE(double);
HEED_OPTION_TYPE(std::string);
HEED_OPTION_TYPE(std::filesystem::path);
HEED_OPTION_TYPE(std::vector<std::int64_t>);
HEED_OPTION_TYPE(std::vector<double>);
HEED_OPTION_TYPE(std::vector<std::string>);
HEED_OPTION_TYPE(std::vector<std::filesystem::path>);
HEED_OPTION_TYPE(std::optional<int>);
HEED_OPTION_TYPE(std::optional<std::int64_t>);
HEED_OPTION_TYPE(std::optional<std::uint64_t>);
HEED_OPTION_TYPE(std::optional<double>);
HEED_OPTION_TYPE(std::optional<std::string>);

#undef HEED_OPTION_TYPE

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

void append_items(Words& items, const std::string& word, char value_separator) {
  const std::size_t first = items.size();
  for (const std::string_view part : split_list(word)) {
    const bool continues = value_separator != '\0' && items.size() > first &&
                           part.find(value_separator) == std::string_view::npos;
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
                       const std::string& description, char value_separator) {
  const auto set = [&items, value_separator](const Words& words) {
    items.clear();
    for (const std::string& word : words) append_items(items, word, value_separator);
  };
  return command.add_option_function<Words>(name, set, description)->refuse_extra_args();
}

Option add_list_option(Command command, const std::string& name, std::string& list,
                       const std::string& description) {
  const auto set = [&list](const Words& words) {
    list.clear();
    for (const std::string& word : words) list += (list.empty() ? "" : ",") + word;
  };
  return command.add_option_function<Words>(name, set, description)->refuse_extra_args();
}

}  // namespace heed::cli
