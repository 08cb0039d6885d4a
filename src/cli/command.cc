#include "cli/command.h"

#include <map>

#include "base/error.h"
#include "base/threads.h"
#include "cli/arguments.h"
#include "cli/terminal/terminal.h"

namespace heed::cli {

Command add_command(Command parent, const std::string& name, const std::string& description) {
  Command command = parent.add_subcommand(name, description);
  command
      ->add_option_function<int>(
          "-t,--threads", [](int count) { set_thread_count(count); },
          "Compute with N threads [one a core, or HEED_THREADS]")
      ->check(between(1, 4096))
      ->type_name("N")
      ->group("General");
  command
      ->add_option_function<std::string>(
          "--color", [](const std::string& when) { set_colour_choice(when); },
          "Use colour: auto, always or never [auto]")
      ->check(one_of({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->group("General");
  command->help_option()->group("General");
  return command;
}

void add_json_option(Command command, bool& json) {
  command.add_flag("--json", json, "Print one JSON document");
}

void fail_usage(const std::string& message) { fail(ErrorCode::invalid_argument, "{}", message); }

}  // namespace heed::cli
