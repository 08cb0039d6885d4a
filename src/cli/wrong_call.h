// Error messages for calls that CLI11 rejects.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace heed::cli {

// What was wrong, what was expected, and the --help to consult.
std::string wrong_call_text(const CLI::App& app, const CLI::ParseError& error);

}  // namespace heed::cli
