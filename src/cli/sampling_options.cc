#include "cli/sampling_options.h"

namespace heed::cli {

void add_sampling_options(Command command, SamplingOptions& options) {
  const auto add = [&command](const char* name, auto& value, const char* description) {
    command.add_option(name, value, description)->capture_default_str()->group("Sampling");
  };
  add("--temp", options.temperature, "Divide logits by X; 0 is greedy");
  add("--top-k", options.top_k, "Keep the N most likely tokens; 0 keeps all");
  add("--top-p", options.top_p, "Keep the most likely tokens up to probability X; 1 keeps all");
  add("--min-p", options.min_p, "Keep tokens above X times the largest probability; 0 keeps all");
  add("--repeat-penalty", options.repeat_penalty, "Penalise recent tokens by X; 1 is off");
  add("--repeat-last-n", options.repeat_last_n, "Penalise the last N tokens; -1 is all");
  command.add_flag("--greedy", options.greedy, "Always choose the most likely token")
      ->group("Sampling");
}

}  // namespace heed::cli
