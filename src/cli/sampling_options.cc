#include "cli/sampling_options.h"

#include <CLI/CLI.hpp>

namespace heed::cli {

void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  const auto add = [&command](const char* name, auto& value, const char* description) {
    command.add_option(name, value, description)->capture_default_str()->group("Sampling");
  };
  add("--temp", options.temperature, "Divides the logits: higher is more surprising, 0 is greedy");
  add("--top-k", options.top_k, "Keep the k likeliest tokens; 0 keeps all");
  add("--top-p", options.top_p, "Keep the fewest tokens that reach this probability; 1 keeps all");
  add("--min-p", options.min_p, "Keep tokens of at least this share of the likeliest; 0 keeps all");
  add("--repeat-penalty", options.repeat_penalty, "Above 1, recent tokens become less likely");
  add("--repeat-last-n", options.repeat_last_n, "How many recent tokens that looks at; -1: all");
  command.add_flag("--greedy", options.greedy, "Always the likeliest token")->group("Sampling");
}

}  // namespace heed::cli
