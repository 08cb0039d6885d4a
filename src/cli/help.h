// What --help prints: options in two columns, wrapped to the terminal, with what holds where an
// option is not given in brackets behind its description.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace heed::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace heed::cli
