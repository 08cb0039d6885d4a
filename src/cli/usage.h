// How commands are called: --help, and the refusal of calls that are wrong.
#pragma once

#include <memory>
#include <span>
#include <string>

namespace CLI {
class App;
class FormatterBase;
class Option;
class ParseError;
}  // namespace CLI

namespace heed::cli {

// --help: options in two columns, wrapped to the terminal, with defaults in brackets.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// The message for a call that CLI11 rejects: what was wrong, what was expected, and the --help to
// consult.
std::string usage_error_text(const CLI::App& app, const CLI::ParseError& error);

// Rejects calls that CLI11 would misinterpret: a list takes one word at a time, and no value is
// empty.
void make_strict(CLI::App& app);

// Checks the words of a call before they are parsed. Throws Error{invalid_argument} for an option
// where a value is expected (`-p --json`) and for a word that may belong to the list before it or
// be the text (`trace --points A B`).
void check_words(const CLI::App& app, std::span<char* const> words);

// The argument that `command` takes without an option, such as TEXT; null where there is none.
const CLI::Option* positional_of(const CLI::App& command);

}  // namespace heed::cli
