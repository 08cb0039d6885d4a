// The commands of `heed`, and what they share: how a command is made and which options every
// command has.
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

// A subcommand of `parent` with --help, -t/--threads, --device, --f32-products and --color.
Command add_command(Command parent, const std::string& name, const std::string& description);

// --json, for commands that report.
void add_json_option(Command command, bool& json);

// Throws Error{invalid_argument}: the call is wrong, and `message` says how to correct it.
[[noreturn]] void fail_usage(const std::string& message);

// One file command_NAME.cc each.
void add_tour_command(Command app);
void add_train_command(Command app);
void add_generate_command(Command app);
void add_translate_command(Command app);
void add_chat_command(Command app);
void add_predict_command(Command app);
void add_attend_command(Command app);
void add_trace_command(Command app);
void add_heads_command(Command app);
void add_lens_command(Command app);
void add_explain_command(Command app);
void add_graph_command(Command app);
void add_patch_command(Command app);
void add_sae_command(Command app);
void add_induction_command(Command app);
void add_eval_command(Command app);
void add_bleu_command(Command app);
void add_params_command(Command app);
void add_plan_command(Command app);
void add_tokenize_command(Command app);
void add_tokenizer_command(Command app);
void add_inspect_command(Command app);
void add_reading_command(Command app);
void add_microworld_command(Command app);
void add_bench_command(Command app);
void add_pull_command(Command app);
void add_convert_command(Command app);
void add_tensorboard_command(Command app);
void add_serve_command(Command app);
void add_explore_command(Command app);

}  // namespace heed::cli
