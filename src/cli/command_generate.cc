// heed generate: continue a prompt, streamed.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/terminal.h"
#include "cli/unread.h"
#include "engine/views/token_json.h"
#include "generate/generator.h"

namespace heed::cli {
namespace {

struct GenerateCommandOptions {
  std::string model = "starter";
  std::string dtype;
  std::string cache_type = "f32";
  TextOptions prompt;
  GenerateOptions generation;
  InterventionOptions interventions;
  std::optional<std::int64_t> edit_from_step;
  bool shift = false;
  bool quiet_prompt = false;
  bool timings = false;
  bool json = false;
};

std::vector<std::int32_t> read_prompt(const TextOptions& prompt, const LoadedModel& model) {
  const int sources =
      (prompt.text ? 1 : 0) + (prompt.file.empty() ? 0 : 1) + (prompt.tokens.empty() ? 0 : 1);
  if (sources > 1) fail_usage("give the prompt once: as -p, as -f or as --tokens");
  if (!prompt.any()) {
    std::string text =
        read_standard_input("there is no prompt: give -p TEXT, -f FILE, --tokens IDS or a pipe");
    if (text.ends_with('\n')) text.pop_back();
    return model.encode(text);
  }
  return prompt.tokens.empty() ? model.encode(read_text(prompt)) : parse_token_ids(prompt.tokens);
}

// Refuses what the generation would refuse, before the first output.
void check_call(const GenerateCommandOptions& options, const LoadedModel& model,
                const std::vector<std::int32_t>& prompt) {
  for (const std::string& stop : options.generation.stop_strings) {
    if (stop.empty()) fail_usage("--stop takes a string, not ''");
  }
  const std::int64_t context = model.transformer.specification().context;
  if (std::ssize(prompt) > context && !options.shift) {
    fail_usage(
        fmt::format("the prompt has {} tokens, more than the model's context of {}; shorten it, or "
                    "use its end with --shift",
                    prompt.size(), context));
  }
  if (options.edit_from_step && !options.interventions.any()) {
    fail_usage("--edit-from-step needs an intervention, such as --ablate L2H3");
  }
  // The token drawn last is never fed to the model.
  const std::int64_t steps = options.generation.max_new_tokens - 1;
  if (options.edit_from_step && *options.edit_from_step >= steps) {
    fail_usage(
        fmt::format("--edit-from-step {} changes nothing: with -n {}, the model runs on "
                    "{} of the generated tokens",
                    *options.edit_from_step, options.generation.max_new_tokens,
                    std::max<std::int64_t>(steps, 0)));
  }
}

OrderedJson result_json(const LoadedModel& model, const std::vector<std::int32_t>& prompt,
                        const GenerationResult& result) {
  const GenerationTimings& timings = result.timings;
  OrderedJson document{{"model", model.name},
                       {"prompt_tokens", tokens_json(model, prompt)},
                       {"tokens", tokens_json(model, result.tokens)},
                       {"text", result.text},
                       {"finish_reason", finish_reason_name(result.finish_reason)},
                       {"shifts", result.shifts},
                       {"prompt_seconds", timings.prompt_seconds},
                       {"generate_seconds", timings.generate_seconds}};
  add_reading(document, model, prompt);
  return document;
}

double per_second(std::int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
}

void log_timings(const GenerationResult& result) {
  const GenerationTimings& timings = result.timings;
  spdlog::info(
      "prompt: {} tokens, {:.0f} tokens/s; generated: {} tokens, {:.0f} tokens/s; ended: {}",
      timings.prompt_tokens, per_second(timings.prompt_tokens, timings.prompt_seconds),
      timings.generated_tokens, per_second(timings.generated_tokens, timings.generate_seconds),
      finish_reason_name(result.finish_reason));
}

// Runs `work`; where it fails, ends the unfinished line so that the message gets its own.
template <class Work>
auto ending_the_line(const bool& begun, Work work) {
  try {
    return work();
  } catch (const Error&) {
    if (begun) print("\n");
    flush_output();
    throw;
  }
}

void generate_text(const GenerateCommandOptions& options) {
  GenerateOptions generation = options.generation;
  if (options.shift) generation.overflow = ContextOverflow::shift_window;
  generation.cache_type = kernels::parse_cache_type(options.cache_type);
  const LoadedModel model = load_model_as(options.model, options.dtype);
  generation.end_tokens = model.end_tokens();
  const std::vector<std::int32_t> prompt = read_prompt(options.prompt, model);
  check_call(options, model, prompt);
  const EditedPositions edited{
      .first = options.edit_from_step ? std::ssize(prompt) + *options.edit_from_step : 0,
      .end = std::ssize(prompt) + std::max<std::int64_t>(generation.max_new_tokens - 1, 0)};
  const auto editor =
      make_interventions(options.interventions, model, {.source = {}, .target = prompt}, edited);
  generation.editor = editor.get();

  if (!options.json) tell_of_unread(model, prompt);
  const Ink ink(standard_output());
  const bool streams = !options.json;
  bool line_begun = false;
  if (streams && !options.quiet_prompt && model.tokenizer != nullptr) {
    print(ink.quiet(shown_text(model.tokenizer->decode(prompt))));
    flush_output();
    line_begun = true;
  }
  const auto show = [&](const GenerationEvent& event) {
    if (!streams) return;
    if (model.tokenizer == nullptr && event.token) print(std::to_string(*event.token) + " ");
    print(shown_text(event.text));
    flush_output();
    line_begun = true;
  };
  generation.stop = interrupt_flag();
  const GenerationResult result = ending_the_line(line_begun, [&] {
    return generate(model.transformer, model.tokenizer.get(), prompt, generation, show);
  });
  if (options.json) {
    print_json(result_json(model, prompt, result));
  } else {
    print("\n");
  }
  flush_output();
  if (options.timings) log_timings(result);
  require(result.finish_reason != FinishReason::interrupted, ErrorCode::interrupted,
          "interrupted after {} tokens", result.tokens.size());
}

}  // namespace

void add_generate_command(Command app) {
  Command command = add_command(app, "generate", "Continue a prompt");
  auto options = std::make_shared<GenerateCommandOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_cache_type_option(*command, options->cache_type);
  command
      ->add_option_function<std::string>(
          "-p,--prompt", [options](const std::string& text) { options->prompt.text = text; },
          "Continue this prompt [standard input]")
      ->type_name("TEXT");
  add_text_file_option(*command, options->prompt.file);
  add_tokens_option(*command, options->prompt.tokens);
  GenerateOptions& generation = options->generation;
  command->add_option("-n,--max-tokens", generation.max_new_tokens, "Generate at most N tokens")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--stop", generation.stop_strings, "End at this string; repeat for several")
      ->type_name("TEXT");
  command->add_flag("--ignore-eos", generation.ignore_end_of_text,
                    "Never sample the end-of-text token");
  command->add_flag("--shift", options->shift,
                    "Continue with the context's last half when it is full");
  command->add_flag("--no-prompt", options->quiet_prompt, "Print only the continuation");
  command->add_flag("--timings", options->timings, "Report speed on standard error");
  add_json_option(*command, options->json);
  add_sampling_options(*command, generation.sampling);
  add_intervention_options(*command, options->interventions);
  command
      ->add_option("--edit-from-step", options->edit_from_step,
                   "Intervene from generated token N, from 0 [the prompt]")
      ->check(at_least(0))
      ->type_name("N")
      ->group(intervention_group);
  add_sampling_seed_option(*command, generation.sampling);
  command->callback([options] { generate_text(*options); });
}

}  // namespace heed::cli
