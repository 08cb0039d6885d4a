#include "cli/command.h"
#include "cli/commands.h"

namespace heed::cli {

void add_predict_command(CLI::App&) {}

}  // namespace heed::cli
