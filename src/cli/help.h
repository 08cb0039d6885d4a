// What --help prints: options in two columns, wrapped to the terminal, with what holds where an
// option is not given in brackets behind its description.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace heed::cli {

std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace heed::cli
