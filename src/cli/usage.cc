#include "cli/usage.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr int widest_help = 100;  // columns: longer lines are hard to follow
constexpr int widest_name = 28;   // longer names have a line of their own
const std::string last_group = "General";

struct Row {
  std::string name;
  std::string description;
};
struct Section {
  std::string title;
  std::vector<Row> rows;
};

// The value's type without the checks that CLI11 puts after it: "N" of "INT:POSITIVE".
std::string value_name(const CLI::Option& option) {
  std::string name = option.get_type_name();
  name = name.substr(0, name.find(':'));
  if (name == "INT" || name == "UINT") name = "N";
  if (name == "FLOAT") name = "X";
  const bool many = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  if (many && !name.ends_with("…")) name += "…";
  return name;
}

// "-m, --model DIR|FILE"; options without a short name are indented as if they had one.
std::string option_name(const CLI::Option& option) {
  std::string name;
  for (const std::string& letter : option.get_snames()) {
    name += (name.empty() ? "-" : ", -") + letter;
  }
  if (name.empty()) name = "  ";
  for (const std::string& word : option.get_lnames()) {
    name += (name == "  " ? "  --" : ", --") + word;
  }
  return option.get_type_size() == 0 ? name : name + " " + value_name(option);
}

std::string option_description(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!option.get_envname().empty()) text += " (or the environment's " + option.get_envname() + ")";
  for (const CLI::Option* other : option.get_excludes()) {
    text += " (not with " + other->get_name() + ")";
  }
  if (option.get_required()) return text + " (required)";
  const std::string standard = option.get_default_str();
  if (standard.empty() || text.ends_with(']')) return text;
  return text + (standard.starts_with('[') ? " " + standard : " [" + standard + "]");
}

Section options_of(const CLI::App& app, const std::string& group) {
  Section section{group, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() != group || option->get_positional()) continue;
    section.rows.push_back({option_name(*option), option_description(*option)});
  }
  return section;
}

std::vector<Section> sections_of(const CLI::App& app) {
  std::vector<Section> sections;
  Section commands{"Commands", {}};
  for (const CLI::App* command : app.get_subcommands({})) {
    commands.rows.push_back({command->get_name(), command->get_description()});
  }
  sections.push_back(std::move(commands));
  Section arguments{"Arguments", {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    arguments.rows.push_back({value_name(*option), option_description(*option)});
  }
  sections.push_back(std::move(arguments));
  for (const std::string& group : app.get_groups()) {
    if (group != last_group) sections.push_back(options_of(app, group));
  }
  sections.push_back(options_of(app, last_group));
  std::erase_if(sections, [](const Section& section) { return section.rows.empty(); });
  return sections;
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string line = "Usage: " + name;
  if (!app.get_subcommands({}).empty()) {
    line += app.get_require_subcommand_min() == 0 ? " [COMMAND]" : " COMMAND";
  }
  line += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    line += option->get_required() ? " " + value_name(*option) : " [" + value_name(*option) + "]";
  }
  return line;
}

int name_width(const std::vector<Section>& sections) {
  int width = 0;
  for (const Section& section : sections) {
    for (const Row& row : section.rows) {
      const int columns = display_width(row.name);
      if (columns <= widest_name) width = std::max(width, columns);
    }
  }
  return width;
}

std::string row_text(const Row& row, int name_columns, int columns) {
  const std::string indent(static_cast<std::size_t>(name_columns) + 4, ' ');
  std::string text = "  " + pad_right(row.name, name_columns);
  bool on_name_line = display_width(row.name) <= name_columns;
  if (!on_name_line) text += "\n";
  for (const std::string& line : wrap(row.description, columns - name_columns - 4)) {
    text += (on_name_line ? "  " : indent) + line + "\n";
    on_name_line = false;
  }
  return text;
}

std::string help_text(const CLI::App* app, const std::string& name) {
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  const int columns = std::min(terminal.width, widest_help);
  std::string text;
  for (const std::string& line : wrap(app->get_description(), columns)) text += line + "\n";
  text += "\n" + usage(*app, name) + "\n";
  const std::vector<Section> sections = sections_of(*app);
  const int name_columns = name_width(sections);
  for (const Section& section : sections) {
    text += "\n" + ink.title(section.title) + "\n";
    for (const Row& row : section.rows) text += row_text(row, name_columns, columns);
  }
  if (app->get_parent() != nullptr) {
    text += "\n" + ink.quiet("Defaults are in [brackets].") + "\n";
  }
  if (app->get_footer().empty()) return text;
  text += "\n";
  for (const std::string& line : wrap(app->get_footer(), columns)) text += line + "\n";
  return text;
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode /*mode*/) const override {
    return help_text(app, name);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

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
std::string text_after(const std::string& text, std::string_view begin) {
  const std::size_t found = text.find(begin);
  return found == std::string::npos ? "" : text.substr(found + begin.size());
}

// "--top-k = 1e3" of a value that is not a number or too large for one.
std::string conversion_problem(const std::string& what) {
  const std::string option = before(what, " = ");
  const std::string value = text_after(what, " = ");
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
  if (const std::string times = text_after(what, "At Most 1 required but received ");
      !times.empty()) {
    return fmt::format("{} is given {} times; give it once", option, times);
  }
  if (const std::string missing = text_after(what, ": 1 required "); !missing.empty()) {
    return fmt::format("{} takes a value: {} {}", option, option, before(missing, " missing"));
  }
  return what;
}

}  // namespace

std::string usage_error_text(const CLI::App& app, const CLI::ParseError& error) {
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

// A text of several words cannot belong to a list; one word after a list's value might.
void check_after_list(const CLI::Option& argument, const SpelledOption& list,
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
    check_after_list(*argument, spelled, value.starts_with('=') ? value.substr(1) : value,
                     words[i]);
  }
}

}  // namespace heed::cli
