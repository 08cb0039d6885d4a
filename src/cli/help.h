// --help: options in two columns, wrapped to the terminal, with defaults in brackets.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace heed::cli {

std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace heed::cli
