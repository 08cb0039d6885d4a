#include "cli/command.h"
#include "cli/commands.h"

namespace heed::cli {

void add_eval_command(CLI::App&) {}

}  // namespace heed::cli
