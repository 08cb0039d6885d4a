// heed bench: measure this machine and this build.
#include <CLI/CLI.hpp>

#include <memory>

#include "base/json.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "engine/benchmark.h"
#include "kernels/instruction_sets.h"

namespace heed::cli {
namespace {

struct BenchOptions {
  BenchmarkOptions benchmark;
  std::vector<std::string> configs{"gpt2"};
  std::vector<std::int64_t> contexts;  // none: the suite's own
  std::string dtype = "f32";
  std::string cache_type = "f32";
  std::string instructions;  // empty: the best
  bool json = false;
};

// Every config at every context, one after the other.
std::vector<BenchmarkReport> measure(const BenchOptions& options) {
  ProgressLine line;
  BenchmarkOptions benchmark = options.benchmark;
  benchmark.dtype = kernels::parse_weight_format(options.dtype);
  benchmark.cache_type = kernels::parse_cache_type(options.cache_type);
  benchmark.progress = line.callback();
  benchmark.stop = interrupt_flag();
  std::vector<std::optional<std::int64_t>> contexts(options.contexts.begin(),
                                                    options.contexts.end());
  if (contexts.empty()) contexts.emplace_back();
  std::vector<BenchmarkReport> reports;
  for (const std::string& config : options.configs) {
    for (const std::optional<std::int64_t> context : contexts) {
      benchmark.config = config;
      benchmark.context = context;
      reports.push_back(run_benchmark(benchmark));
      line.clear();
      if (!options.json) print_benchmark(reports.back());
      flush_output();
    }
  }
  return reports;
}

void bench(const BenchOptions& options) {
  kernels::use_instruction_set(options.instructions);
  const std::vector<BenchmarkReport> reports = measure(options);
  if (options.json) print_json(benchmark_json(reports));
}

struct Suite {
  BenchmarkSuite suite;
  const char* description;
  const char* context;  // what --context is, empty: no such option
  const char* count;    // what -n counts
};

// --config, -m, --dtype, --batch, --context and --cache-type, of suites about models.
void add_shape_options(CLI::App& command, const Suite& suite, BenchOptions& options) {
  CLI::Option* config = command
                            .add_option("--config", options.configs,
                                        "Shape of a model of random weights: a preset (see `heed "
                                        "params`), a config.json or a model directory; several "
                                        "with commas between")
                            ->delimiter(',')
                            ->allow_extra_args(false)
                            ->default_str("gpt2")
                            ->type_name("NAME|FILE|DIR");
  command
      .add_option("-m,--model", options.benchmark.model,
                  "A model with its own weights: a directory or \"starter\"")
      ->type_name("DIR")
      ->excludes(config);
  command.add_option("--dtype", options.dtype, "Numbers in products: f32, bf16, int8 or int4")
      ->capture_default_str()
      ->type_name("DTYPE");
  command.add_option("-b,--batch", options.benchmark.batch, "Sequences side by side")
      ->default_str(suite.suite == BenchmarkSuite::train ? "4" : "1")
      ->type_name("B");
  command.add_option("-c,--context", options.contexts, suite.context)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("T,…");
  if (suite.suite == BenchmarkSuite::prompt || suite.suite == BenchmarkSuite::decode) {
    add_cache_type_option(command, options.cache_type);
  }
}

void add_suite(CLI::App& parent, const Suite& suite) {
  const std::string name(benchmark_suite_name(suite.suite));
  CLI::App* command = add_command(parent, name, suite.description);
  auto options = std::make_shared<BenchOptions>();
  options->benchmark.suite = suite.suite;
  if (*suite.context != '\0') add_shape_options(*command, suite, *options);
  if (suite.suite == BenchmarkSuite::tokenizer) {
    command
        ->add_option("-m,--model", options->benchmark.model,
                     "Whose tokenizer: a directory, a tokenizer.json or \"starter\"")
        ->default_str("starter")
        ->type_name("DIR|FILE");
    command
        ->add_option("-f,--file", options->benchmark.text_file,
                     "Text to read [stories of the microworld, about 8 MB]")
        ->type_name("FILE");
  }
  if (suite.suite == BenchmarkSuite::prompt) {
    command->add_flag("--all-logits", options->benchmark.all_logits,
                      "Compute the logits of every position, not of the last alone");
  }
  if (*suite.count != '\0') {
    command->add_option("-n,--count", options->benchmark.count, suite.count)->type_name("N");
  }
  const char* repeats = suite.suite == BenchmarkSuite::peak    ? "20"
                        : suite.suite == BenchmarkSuite::train ? "3"
                                                               : "5";
  command
      ->add_option("-r,--repeats", options->benchmark.repeats,
                   "How often it is measured, for a median")
      ->default_str(repeats)
      ->type_name("R");
  command
      ->add_option("--instructions", options->instructions,
                   "Compute with these, such as AVX2; the ceilings too [the best there "
                   "are]")
      ->type_name("SET");
  add_json_option(*command, options->json);
  command->callback([options] { bench(*options); });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* command = add_command(app, "bench", "Measure this machine and this build");
  command->require_subcommand(1);
  command->footer("docs/performance.md says what is measured, and how operations are counted.");
  constexpr Suite suites[] = {
      {BenchmarkSuite::peak, "What the machine could do at best", "", ""},
      {BenchmarkSuite::train, "Training steps: forward, backward, AdamW",
       "Tokens of a sequence [the model's context]", "Steps in a repeat [1]"},
      {BenchmarkSuite::prompt, "Reading a prompt", "Tokens of the prompt [512]",
       "Prompts in a repeat [1]"},
      {BenchmarkSuite::decode, "Generating token after token",
       "Tokens read before the first is generated [0]", "Tokens in a repeat [128]"},
      {BenchmarkSuite::attention, "Causal attention alone, forward and backward",
       "Positions [4096]", "Calls in a repeat [1]"},
      {BenchmarkSuite::tokenizer, "Text to tokens, in one thread and in all", "",
       "Readings of the text in a repeat [1]"}};
  for (const Suite& suite : suites) add_suite(*command, suite);
}

}  // namespace heed::cli
