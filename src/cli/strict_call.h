// Rejects calls that CLI11 would misinterpret.
#pragma once

#include <span>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heed::cli {

// For every option of every command: a list takes one word at a time and no value is empty.
void make_strict(CLI::App& app);

// Checks the words of a call before they are parsed. Throws Error{invalid_argument} for an option
// where a value is expected (`-p --json`) and for a word that may belong to the list before it or
// be the text (`trace --points A B`).
void check_words(const CLI::App& app, std::span<char* const> words);

// The argument that `command` takes without an option, such as TEXT; null where there is none.
const CLI::Option* positional_of(const CLI::App& command);

}  // namespace heed::cli
