// What all commands share: how a command is made and which options every command has.
//
//   void add_greet_command(Command app) {
//     Command command = add_command(app, "greet", "Say hello");
//     auto options = std::make_shared<GreetOptions>();
//     command->add_option("--name", options->name, "Greet NAME")->capture_default_str();
//     command->callback([options] { greet(*options); });
//   }
//
// A callback prints its result (output.h), or throws heed::Error, which main() turns into a message
// and an exit status.
#pragma once

#include <string>

#include "cli/arguments.h"

namespace heed::cli {

// A subcommand of `parent` with --help, -t/--threads and --color.
Command add_command(Command parent, const std::string& name, const std::string& description);

// --json, for commands that report.
void add_json_option(Command command, bool& json);

// Throws Error{invalid_argument}: the call is wrong, and `message` says how to correct it.
[[noreturn]] void fail_usage(const std::string& message);

}  // namespace heed::cli
