#include "cli/strict_call.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>

#include "cli/command.h"

namespace heed::cli {
namespace {

// The one list of several words: a shell expands `--data *.txt` so.
constexpr std::string_view option_of_words = "data";

bool takes_words(const CLI::Option& option) { return option.check_lname(option_of_words.data()); }

bool is_list(const CLI::Option& option) {
  return option.get_items_expected_max() > 1 && !option.get_positional() && !takes_words(option);
}

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

bool has_space(std::string_view word) {
  return word.find_first_of(" \t\n") != std::string_view::npos;
}

// An option as a word of a call spells it: --name, --name=value, -n, -nvalue.
struct SpelledOption {
  const CLI::Option* option = nullptr;
  std::string name;
  bool has_value = false;
};

SpelledOption spelled_option(const CLI::App& command, std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return {};
  const bool is_long = word[1] == '-';
  const std::string name(is_long ? word.substr(0, word.find('=')) : word.substr(0, 2));
  return {command.get_option_no_throw(name), name, name.size() < word.size()};
}

const CLI::App* subcommand_of(const CLI::App& command, std::string_view name) {
  const auto found = command.get_subcommands(
      [&](const CLI::App* candidate) { return candidate->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

void check_value(const CLI::App& command, const SpelledOption& spelled, std::string_view value) {
  if (has_space(value) || spelled_option(command, value).option == nullptr) return;
  const std::vector<std::string>& long_names = spelled.option->get_lnames();
  fail_usage(fmt::format(
      "{} takes a value, and {} is an option{}", spelled.name, value,
      long_names.empty()
          ? ""
          : fmt::format("; to pass it as the value, write --{}={}", long_names[0], value)));
}

// A text of several words cannot belong to a list; one word behind a list's value might.
void check_behind_list(const CLI::Option& argument, const SpelledOption& list,
                       std::string_view value, std::string_view word) {
  if (word.starts_with('-') || has_space(word)) return;
  fail_usage(
      fmt::format("'{}' after {} {} is ambiguous: write {} {},{} if it belongs to the list, or put "
                  "the {} first",
                  word, list.name, value, list.name, value, word,
                  argument.get_name() == "TEXT" ? "text" : argument.get_name()));
}

}  // namespace

const CLI::Option* positional_of(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) return option;
  }
  return nullptr;
}

void make_strict(CLI::App& app) {
  const CLI::Validator not_empty(
      [](const std::string& value) {
        return value.empty() ? std::string("takes a value, not ''") : std::string();
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    const bool is_text = option->get_positional() && option->get_name() == "TEXT";
    if (is_flag(*option) || is_text) continue;  // of an empty text, encoding says so
    if (is_list(*option)) option->allow_extra_args(false);
    option->check(not_empty);
  }
  for (CLI::App* command : app.get_subcommands({})) make_strict(*command);
}

void check_words(const CLI::App& app, std::span<char* const> words) {
  const CLI::App* command = &app;
  for (std::size_t i = 0; i < words.size();) {
    const std::string_view word = words[i++];
    if (word == "--") return;
    const SpelledOption spelled = spelled_option(*command, word);
    if (spelled.option == nullptr) {
      if (const CLI::App* next = subcommand_of(*command, word)) command = next;
      continue;
    }
    if (is_flag(*spelled.option)) continue;
    std::string_view value = word.substr(spelled.name.size());
    if (!spelled.has_value) {
      if (i == words.size()) return;
      value = words[i++];
      check_value(*command, spelled, value);
    }
    const CLI::Option* const argument = positional_of(*command);
    if (!is_list(*spelled.option) || i == words.size() || argument == nullptr) continue;
    check_behind_list(*argument, spelled, value.starts_with('=') ? value.substr(1) : value,
                      words[i]);
  }
}

}  // namespace heed::cli
