// heed bench: measure this machine and this build.
#include <sys/wait.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/numbers.h"
#include "cli/arguments.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "engine/bench/benchmark.h"
#include "kernels/instruction_sets.h"

namespace heed::cli {
namespace {

constexpr std::size_t max_output = 1 << 20;  // bytes; of longer ones, the end is read

bool is_digit(char c) { return '0' <= c && c <= '9'; }

// Digits with an optional fraction and exponent. Nothing where there is none.
std::optional<double> last_number(std::string_view text) {
  std::optional<double> last;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    double number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (!is_digit(*at) || error != std::errc()) {
      ++at;
      continue;
    }
    last = number;
    at = after;
  }
  return last;
}

// Runs a command in the shell and returns the last number that it prints: its tokens a second. Its
// standard error is not touched. Throws Error{invalid_argument} when the command fails or its last
// number is not a rate, and Error{interrupted} when it is ended by Ctrl-C.
double rival_rate(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  require(pipe != nullptr, ErrorCode::input_output, "cannot start the shell for '{}'", command);
  std::string output;
  std::array<char, 4096> piece;
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) {
    output.append(piece.data(), size);
    if (output.size() > 2 * max_output) output.erase(0, output.size() - max_output);
  }
  const int status = ::pclose(pipe);
  require(!stop_requested(interrupt_flag()), ErrorCode::interrupted,
          "the benchmark was interrupted");
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, ErrorCode::invalid_argument,
          "the other program failed: '{}' ended with {} {}", command,
          WIFEXITED(status) ? "status" : "signal",
          WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  const std::optional<double> rate = last_number(output);
  require(rate.has_value() && *rate > 0 && std::isfinite(*rate), ErrorCode::invalid_argument,
          "the last number that '{}' prints has to be its tokens a second; it printed {}", command,
          rate ? fmt::format("{}", *rate) : "none");
  return *rate;
}

struct BenchOptions {
  BenchmarkOptions benchmark;
  std::vector<std::string> configs{"gpt2"};
  std::string contexts;  // a list of numbers; empty: the suite's own
  std::string dtype;     // empty: the blocks of a GGUF file, else f32
  std::string cache_type = "f32";
  std::string instructions;  // empty: the best
  std::string against;       // a shell command; empty: none
  bool json = false;
};

// Every config at every context, one after the other. There is nothing to save: an interrupt ends
// the program at once, whatever it measures.
std::vector<BenchmarkReport> measure(const BenchOptions& options) {
  ProgressLine line;
  BenchmarkOptions benchmark = options.benchmark;
  benchmark.uses_blocks = options.dtype.empty();
  if (!options.dtype.empty()) benchmark.dtype = kernels::parse_weight_format(options.dtype);
  benchmark.cache_type = kernels::parse_cache_type(options.cache_type);
  benchmark.progress = line.callback();
  const std::vector<std::int64_t> given = parse_indices(options.contexts);
  std::vector<std::optional<std::int64_t>> contexts(given.begin(), given.end());
  if (contexts.empty()) contexts.emplace_back();
  if (!options.against.empty()) {
    if (options.configs.size() * contexts.size() > 1) {
      fail_usage("--against compares with one program: give one config and one context");
    }
    benchmark.against = [&] { return rival_rate(options.against); };
  }
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
void add_shape_options(Command command, const Suite& suite, BenchOptions& options) {
  Option config = add_list_option(command, "--config", options.configs,
                                  "Use random weights of a preset, config.json or model")
                      ->default_str(options.configs.front())
                      ->type_name("NAME|FILE|DIR,…");
  command
      .add_option("-m,--model", options.benchmark.model,
                  suite.suite == BenchmarkSuite::translate
                      ? "Use a model's own weights: a directory, pulled name or \"translator\""
                      : "Use a model's own weights: a directory, pulled name or \"starter\"")
      ->type_name("DIR")
      ->excludes(config);
  command.add_option("--dtype", options.dtype, "Multiply in f32, bf16, int8 or int4")
      ->default_str("f32, or a GGUF file's blocks")
      ->type_name("DTYPE");
  add_prompt_option(command);
  command.add_option("-b,--batch", options.benchmark.batch, "Run N sequences at once")
      ->default_str(suite.suite == BenchmarkSuite::train       ? "4"
                    : suite.suite == BenchmarkSuite::translate ? "128"
                                                               : "1")
      ->type_name("N");
  add_list_option(command, "-c,--context", options.contexts, suite.context)->type_name("T,…");
  if (suite.suite == BenchmarkSuite::prompt || suite.suite == BenchmarkSuite::decode ||
      suite.suite == BenchmarkSuite::translate) {
    add_cache_type_option(command, options.cache_type);
  }
}

void add_suite(Command parent, const Suite& suite) {
  const std::string name(benchmark_suite_name(suite.suite));
  Command command = add_command(parent, name, suite.description);
  auto options = std::make_shared<BenchOptions>();
  options->benchmark.suite = suite.suite;
  if (suite.suite == BenchmarkSuite::translate) options->configs = {"multi30k-en-de"};
  if (*suite.context != '\0') add_shape_options(*command, suite, *options);
  if (suite.suite == BenchmarkSuite::tokenizer) {
    command
        ->add_option("-m,--model", options->benchmark.model,
                     "Use the tokenizer of a directory, tokenizer.json or \"starter\"")
        ->default_str("starter")
        ->type_name("DIR|FILE");
    command
        ->add_option("-f,--text", options->benchmark.text_file,
                     "Encode this file [8 MB of microworld stories]")
        ->type_name("FILE");
  }
  if (suite.suite == BenchmarkSuite::prompt) {
    command->add_flag("--all-logits", options->benchmark.all_logits,
                      "Compute the logits of every position");
  }
  if (suite.suite == BenchmarkSuite::translate) {
    command
        ->add_option("--beams", options->benchmark.beams,
                     "Keep N hypotheses in beam search; 1: greedy only")
        ->capture_default_str()
        ->type_name("N");
  }
  if (*suite.count != '\0') {
    command->add_option("-n,--count", options->benchmark.count, suite.count)->type_name("N");
  }
  const char* repeats = suite.suite == BenchmarkSuite::peak    ? "20"
                        : suite.suite == BenchmarkSuite::train ? "3"
                                                               : "5";
  command
      ->add_option("-r,--repeats", options->benchmark.repeats,
                   "Repeat N times and report the median")
      ->default_str(repeats)
      ->type_name("N");
  command
      ->add_option("--instructions", options->instructions,
                   "Use this instruction set, such as AVX2 [the best available]")
      ->type_name("SET");
  if (suite.suite != BenchmarkSuite::peak) {
    command
        ->add_option("--against", options->against,
                     "Alternate with a command; the last number it prints is its tokens/s")
        ->type_name("COMMAND");
  }
  add_json_option(*command, options->json);
  command->callback([options] { bench(*options); });
}

}  // namespace

void add_bench_command(Command app) {
  Command command = add_command(app, "bench", "Measure this machine and this build");
  command->require_subcommand(1);
  command->footer("docs/performance.md explains what is measured and how operations are counted.");
  constexpr Suite suites[] = {
      {BenchmarkSuite::peak, "Measure the machine's peak", "", ""},
      {BenchmarkSuite::train, "Measure training steps: forward, backward, AdamW",
       "Train on sequences of T tokens [context]", "Run N steps per repeat [1]"},
      {BenchmarkSuite::prompt, "Measure the forward pass over a prompt",
       "Use prompts of T tokens [512]", "Run N prompts per repeat [1]"},
      {BenchmarkSuite::decode, "Measure generation, token by token",
       "Start after T tokens in the cache [0]", "Generate N tokens per repeat [128]"},
      {BenchmarkSuite::attention, "Measure causal attention, forward and backward",
       "Use T positions [4096]", "Run N calls per repeat [1]"},
      {BenchmarkSuite::tokenizer, "Measure encoding, with one thread and with all", "",
       "Encode the text N times per repeat [1]"},
      {BenchmarkSuite::translate, "Measure a translator: training step, encoding, decoding",
       "Use sources and targets of T tokens [16]", "Do all N times per repeat [1]"}};
  for (const Suite& suite : suites) add_suite(*command, suite);
}

}  // namespace heed::cli
