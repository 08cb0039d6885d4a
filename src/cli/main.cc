// The command line. A face: it asks, shows and reports; what it shows is computed elsewhere.
#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "cli/wait_policy.h"
#include "heed/version.h"

namespace heed::cli {
namespace {

enum ExitStatus { done = 0, work_failed = 1, wrong_call = 2 };

int exit_status(ErrorCode code) {
  if (code == ErrorCode::invalid_argument) return wrong_call;
  if (code == ErrorCode::interrupted) return interrupted_exit_status;
  return work_failed;
}

void say(const std::string& message) {
  ProgressLine::clear_any();
  const std::string line = "heed: " + message + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void add_all_commands(CLI::App& app) {
  add_tour_command(app);
  add_train_command(app);
  add_generate_command(app);
  add_predict_command(app);
  add_attend_command(app);
  add_trace_command(app);
  add_heads_command(app);
  add_lens_command(app);
  add_explain_command(app);
  add_patch_command(app);
  add_induction_command(app);
  add_eval_command(app);
  add_params_command(app);
  add_tokenize_command(app);
  add_tokenizer_command(app);
  add_microworld_command(app);
  add_bench_command(app);
  add_convert_command(app);
  add_serve_command(app);
  add_explore_command(app);
}

// A word where a command should stand, and none of that name.
bool names_no_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  const auto has_name = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  return app.get_subcommands(has_name).empty();
}

// The names of a command's own commands, as in "head, neuron".
std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

// What is wrong with a call, with where to look it up.
std::string wrong_call_text(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::string name = command->get_name();
  for (const CLI::App* parent = command->get_parent(); parent != nullptr;
       parent = parent->get_parent()) {
    name = parent->get_name() + " " + name;
  }
  std::string problem = error.what();
  const std::vector<std::string> unknown = command->remaining();
  if (command->get_require_subcommand_min() > 0) {
    problem = unknown.empty()
                  ? "a command is missing after '" + name + "'"
                  : "there is no command or option '" + unknown.front() + "' after '" + name + "'";
    if (command != &app) problem += "; there are " + command_names(*command);
  } else if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ConversionError)) {
    const std::string conversion = "Could not convert: ";
    if (problem.starts_with(conversion)) {
      problem = "this takes a number: " + problem.substr(conversion.size());
    }
  }
  return problem + " (see `" + name + " --help`)";
}

// Parsing runs the command: it is called back once its options are complete.
int parse_and_run(CLI::App& app, int argc, char** argv) {
  if (names_no_command(app, argc, argv)) {
    say(std::string("there is no command '") + argv[1] + "' (see `heed --help`)");
    return wrong_call;
  }
  try {
    thread_count();  // reads HEED_THREADS, and says so where it makes no sense
    app.parse(argc, argv);
    flush_output();
    return done;
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return done;
  } catch (const CLI::ParseError& error) {
    say(wrong_call_text(app, error));
    return wrong_call;
  } catch (const Error& error) {
    say(error.what());
    return exit_status(error.code());
  } catch (const std::bad_alloc&) {
    say("out of memory");
    return work_failed;
  } catch (const std::exception& error) {
    say(std::string("unexpected failure: ") + error.what());
    return work_failed;
  }
}

}  // namespace
}  // namespace heed::cli

int main(int argc, char** argv) {
  using namespace heed::cli;
  shorten_spins(argv);
  catch_interrupts();
  auto log = spdlog::stderr_color_mt("heed");
  log->set_pattern("%^%v%$");
  spdlog::set_default_logger(log);

  CLI::App app("Train, run and open up GPT-style transformers", "heed");
  app.set_version_flag("--version", std::string("heed ") + heed::version,
                       "Show the version and exit");
  app.set_help_flag("-h,--help", "Show this help and exit");
  app.formatter(help_formatter());
  app.require_subcommand(1);
  add_all_commands(app);
  app.footer("`heed COMMAND --help` shows a command's options; `heed tour` is a good start.");
  return parse_and_run(app, argc, argv);
}
