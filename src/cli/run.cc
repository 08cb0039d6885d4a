#include "cli/run.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/terminal/terminal.h"
#include "cli/usage.h"
#include "comm/group.h"
#include "heed/f32_products.h"
#include "heed/version.h"

namespace heed::cli {
namespace {

void add_all_commands(Command app) {
  add_tour_command(app);
  add_train_command(app);
  add_generate_command(app);
  add_translate_command(app);
  add_chat_command(app);
  add_predict_command(app);
  add_attend_command(app);
  add_trace_command(app);
  add_heads_command(app);
  add_lens_command(app);
  add_explain_command(app);
  add_graph_command(app);
  add_patch_command(app);
  add_sae_command(app);
  add_induction_command(app);
  add_eval_command(app);
  add_bleu_command(app);
  add_params_command(app);
  add_plan_command(app);
  add_tokenize_command(app);
  add_tokenizer_command(app);
  add_reading_command(app);
  add_microworld_command(app);
  add_bench_command(app);
  add_pull_command(app);
  add_convert_command(app);
  add_inspect_command(app);
  add_tensorboard_command(app);
  add_serve_command(app);
  add_explore_command(app);
}

// Whether the first word is not an option and not a command's name.
bool names_no_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  const auto has_name = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  return app.get_subcommands(has_name).empty();
}

void parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
  }
}

// Parsing runs the command: it is called back once its options are complete.
int parse_and_run(CLI::App& app, int argc, char** argv) {
  if (names_no_command(app, argc, argv)) {
    say(std::string("there is no command '") + argv[1] + "' (see `heed --help`)");
    return usage_error;
  }
  try {
    // An invalid HEED_THREADS or HEED_F32_PRODUCTS is refused before anything runs.
    thread_count();
    f32_products();
    check_words(app, std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
    parse(app, argc, argv);
    flush_output();
    return done;
  } catch (const CLI::ParseError& error) {
    report_once(usage_error_text(app, error));
    return usage_error;
  } catch (const AgreedError& error) {  // of several processes one speaks
    if (error.speaks()) say(error.what());
    return exit_status(error.code());
  } catch (const Error& error) {
    report_once(error.what());
    return exit_status(error.code());
  } catch (const std::bad_alloc&) {
    say("out of memory");
    return work_failed;
  } catch (const std::exception& error) {
    say(std::string("unexpected failure: ") + error.what());
    return work_failed;
  }
}

// The text of a log line. It may hold what files and requests say: see escape_controls.
class EscapedText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const std::string text =
        escape_controls(std::string_view(message.payload.data(), message.payload.size()));
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedText>();
  }
};

// To standard error, in colour on a terminal.
void start_log() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<EscapedText>('*').set_pattern("%^%*%$");
  auto log = spdlog::stderr_color_mt("heed");
  log->set_formatter(std::move(formatter));
  spdlog::set_default_logger(log);
}

int run_program(int argc, char** argv) {
  catch_interrupts();
  let_large_writes_fail();
  start_log();

  CLI::App app("Train, run and open up GPT-style transformers", "heed");
  app.set_version_flag("--version", std::string("heed ") + heed::version,
                       "Show the version and exit");
  app.set_help_flag("-h,--help", "Show this help and exit");
  app.formatter(help_formatter());
  app.require_subcommand(1);
  add_all_commands(Command(&app));
  make_strict(app);
  app.footer("`heed COMMAND --help` shows a command's options; `heed tour` is a good start.");
  return parse_and_run(app, argc, argv);
}

}  // namespace

int run(int argc, char** argv) {
  reserve_memory_for_unwinding();
  try {
    return run_program(argc, argv);
  } catch (const std::bad_alloc&) {  // not even the commands fit
    say("out of memory");
    return work_failed;
  }
}

}  // namespace heed::cli
