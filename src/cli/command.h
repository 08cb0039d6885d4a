// What all commands share: how one is made, the options that every one takes, and how text and
// models are asked for.
//
//   void add_greet_command(CLI::App& app) {
//     CLI::App* command = add_command(app, "greet", "Say hello");
//     auto options = std::make_shared<GreetOptions>();
//     command->add_option("--name", options->name, "Whom to greet")->capture_default_str();
//     command->callback([options] { greet(*options); });
//   }
//
// A callback prints its result (output.h), or throws heed::Error, which main() turns into a message
// and an exit status.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace heed::cli {

// A subcommand of `parent` with --help, -t/--threads and --color.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description);

// --json, for commands that report.
void add_json_option(CLI::App& command, bool& json);

// What to do for a user whose command lacks something, and the exit status that goes with it.
[[noreturn]] void fail_usage(const std::string& message);

}  // namespace heed::cli
