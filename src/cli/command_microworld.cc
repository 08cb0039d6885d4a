#include "cli/command.h"
#include "cli/commands.h"

namespace heed::cli {

void add_microworld_command(CLI::App&) {}

}  // namespace heed::cli
