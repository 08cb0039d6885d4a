#include "cli/command.h"
#include "cli/commands.h"

namespace heed::cli {

void add_tokenize_command(CLI::App&) {}

}  // namespace heed::cli
