#include "cli/help.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/terminal/ink.h"
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

// The value's type without the checks that CLI11 puts behind it: "N" of "INT:POSITIVE".
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

}  // namespace heed::cli
