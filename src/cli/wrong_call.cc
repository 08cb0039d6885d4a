#include "cli/wrong_call.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/strict_call.h"

namespace heed::cli {
namespace {

// The names of a command's subcommands, such as "head, neuron".
std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

struct Renamed {
  std::string_view command;
  std::string_view before;
  std::string_view now;
};
constexpr Renamed renamed[] = {{"generate", "--file", "--text"},
                               {"tokenizer", "--file", "--text"},
                               {"head", "--top", "--words"}};

// Describes the words that no option of `command` takes.
std::string stray_words_problem(const CLI::App& command) {
  const std::vector<std::string> words = command.remaining();
  if (words.empty()) return "there are unexpected arguments";
  const std::string& first = words.front();
  for (const Renamed& option : renamed) {
    const std::string_view name = std::string_view(first).substr(0, first.find('='));
    if (option.command == command.get_name() && option.before == name) {
      return fmt::format("the option {} was renamed to {}", name, option.now);
    }
  }
  if (first.starts_with("-")) return fmt::format("unknown option '{}'", first);
  const CLI::Option* text = positional_of(command);
  if (text == nullptr) {
    return fmt::format(
        "unexpected argument '{}': separate the items of a list by commas, or repeat the option",
        first);
  }
  if (text->get_name() != "TEXT") return fmt::format("unexpected argument '{}'", first);
  std::string whole = text->results().empty() ? "" : text->results().front();
  for (const std::string& word : words) whole += (whole.empty() ? "" : " ") + word;
  return fmt::format("unexpected argument '{}': give the text as one argument, in quotes: '{}'",
                     first, whole);
}

std::string before(const std::string& text, std::string_view end) {
  return text.substr(0, text.find(end));
}
std::string behind(const std::string& text, std::string_view begin) {
  const std::size_t found = text.find(begin);
  return found == std::string::npos ? "" : text.substr(found + begin.size());
}

// "--top-k = 1e3" of a value that is not a number or too large for one.
std::string conversion_problem(const std::string& what) {
  const std::string option = before(what, " = ");
  const std::string value = behind(what, " = ");
  const bool is_number =
      !value.empty() && value.find_first_not_of("0123456789", value[0] == '-') == std::string::npos;
  return is_number ? fmt::format("{} {} is out of range", option, value)
                   : fmt::format("{} takes a number, not '{}'", option, value);
}

// CLI11's messages in heed's words; others are clear as they are.
std::string problem_text(const CLI::ParseError& error) {
  std::string what = error.what();
  const std::string conversion = "Could not convert: ";
  if (what.starts_with(conversion)) return conversion_problem(what.substr(conversion.size()));
  const std::string option = before(what, ": ");
  if (const std::string times = behind(what, "At Most 1 required but received "); !times.empty()) {
    return fmt::format("{} is given {} times; give it once", option, times);
  }
  if (const std::string missing = behind(what, ": 1 required "); !missing.empty()) {
    return fmt::format("{} takes a value: {} {}", option, option, before(missing, " missing"));
  }
  return what;
}

}  // namespace

std::string wrong_call_text(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::string name = command->get_name();
  for (const CLI::App* parent = command->get_parent(); parent != nullptr;
       parent = parent->get_parent()) {
    name = parent->get_name() + " " + name;
  }
  std::string problem = problem_text(error);
  const std::vector<std::string> unknown = command->remaining();
  if (command->get_require_subcommand_min() > 0) {
    problem = unknown.empty()
                  ? "a command is missing after '" + name + "'"
                  : "there is no command or option '" + unknown.front() + "' after '" + name + "'";
    if (command != &app) problem += "; there are " + command_names(*command);
  } else if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    problem = stray_words_problem(*command);
  }
  return problem + " (see `" + name + " --help`)";
}

}  // namespace heed::cli
