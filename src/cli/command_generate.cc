// heed generate: continue a prompt, shown as it is written.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/number_option.h"
#include "cli/output.h"
#include "cli/sampling_options.h"
#include "cli/terminal/ink.h"
#include "generate/generator.h"

namespace heed::cli {
namespace {

struct GenerateCommandOptions {
  std::string model = "starter";
  std::string dtype;
  std::string cache_type = "f32";
  std::string prompt;
  std::string prompt_file;
  std::string tokens;
  GenerateOptions generation;
  InterventionOptions interventions;
  std::optional<std::int64_t> edit_from_step;
  bool shift = false;
  bool quiet_prompt = false;
  bool timings = false;
  bool json = false;
};

std::vector<std::int32_t> read_prompt(const GenerateCommandOptions& options,
                                      const LoadedModel& model) {
  const int sources = (options.prompt.empty() ? 0 : 1) + (options.prompt_file.empty() ? 0 : 1) +
                      (options.tokens.empty() ? 0 : 1);
  if (sources > 1) fail_usage("give the prompt once: as -p, as -f or as --tokens");
  if (!options.tokens.empty()) return parse_token_ids(options.tokens);
  if (!options.prompt.empty()) return model.encode(options.prompt);
  std::string text = options.prompt_file.empty()
                         ? read_standard_input(
                               "what prompt? Give it as -p TEXT, -f FILE or in a "
                               "pipe")
                         : read_text_file(options.prompt_file);
  if (text.ends_with('\n')) text.pop_back();
  return model.encode(text);
}

// Refuses what the generation would, before a line of output is begun.
void check_call(const GenerateCommandOptions& options, const LoadedModel& model,
                const std::vector<std::int32_t>& prompt) {
  for (const std::string& stop : options.generation.stop_strings) {
    if (stop.empty()) fail_usage("--stop '' would end every text at once; give a string");
  }
  const std::int64_t context = model.gpt.config().context;
  if (std::ssize(prompt) > context && !options.shift) {
    fail_usage(
        fmt::format("the prompt has {} tokens, more than the model's context of {}; shorten it, or "
                    "read its end alone with --shift",
                    prompt.size(), context));
  }
  if (options.edit_from_step && !options.interventions.any()) {
    fail_usage("--edit-from-step says when interventions begin, and there are none; add one");
  }
}

OrderedJson result_json(const LoadedModel& model, const std::vector<std::int32_t>& prompt,
                        const GenerationResult& result) {
  const GenerationTimings& timings = result.timings;
  return {{"model", model.name},
          {"prompt_tokens", prompt},
          {"tokens", result.tokens},
          {"text", result.text},
          {"finish_reason", finish_reason_name(result.finish_reason)},
          {"shifts", result.shifts},
          {"prompt_seconds", timings.prompt_seconds},
          {"generate_seconds", timings.generate_seconds}};
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

// Does `work`; where it fails, ends the line that was begun, so that the message has its own.
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
  generation.sampling.validate();
  if (options.shift) generation.overflow = ContextOverflow::shift_window;
  generation.stop = interrupt_flag();
  generation.cache_type = kernels::parse_cache_type(options.cache_type);
  const LoadedModel model = load_model_as(options.model, options.dtype);
  const std::vector<std::int32_t> prompt = read_prompt(options, model);
  check_call(options, model, prompt);
  const std::int64_t first_edited =
      options.edit_from_step ? std::ssize(prompt) + *options.edit_from_step : 0;
  const auto editor = make_interventions(options.interventions, model, prompt, first_edited);
  generation.editor = editor.get();

  const Ink ink(standard_output());
  const bool streams = !options.json;
  bool line_begun = false;
  if (streams && !options.quiet_prompt && model.tokenizer != nullptr) {
    print(ink.quiet(model.tokenizer->decode(prompt)));
    flush_output();
    line_begun = true;
  }
  const auto show = [&](const GenerationEvent& event) {
    if (!streams) return;
    if (model.tokenizer == nullptr && event.token) print(std::to_string(*event.token) + " ");
    print(event.text);
    flush_output();
    line_begun = true;
  };
  const GenerationResult result = ending_the_line(line_begun, [&] {
    return generate(model.gpt, model.tokenizer.get(), prompt, generation, show);
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

void add_generate_command(CLI::App& app) {
  CLI::App* command = add_command(app, "generate", "Continue a prompt");
  auto options = std::make_shared<GenerateCommandOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_cache_type_option(*command, options->cache_type);
  command
      ->add_option("-p,--prompt", options->prompt,
                   "The prompt; without it, what comes through a pipe")
      ->type_name("TEXT");
  command->add_option("-f,--file", options->prompt_file, "A file with the prompt")
      ->type_name("FILE");
  command->add_option("--tokens", options->tokens, "Token ids as the prompt, such as 5,17,4")
      ->type_name("IDS");
  GenerateOptions& generation = options->generation;
  command->add_option("-n,--max-tokens", generation.max_new_tokens, "Tokens to write at most")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--stop", generation.stop_strings, "End at this string; may be repeated")
      ->type_name("TEXT");
  command->add_flag("--ignore-eos", generation.ignore_end_of_text, "Never end the text by itself");
  command->add_flag("--shift", options->shift,
                    "When the context is full, go on with its last half");
  command->add_flag("--no-prompt", options->quiet_prompt, "Print only what is new");
  command->add_flag("--timings", options->timings, "Report speed on standard error");
  add_json_option(*command, options->json);
  add_sampling_options(*command, generation.sampling);
  add_intervention_options(*command, options->interventions);
  command
      ->add_option("--edit-from-step", options->edit_from_step,
                   "Intervene from this generated token on, counted from 0 [the prompt too]")
      ->check(at_least(0))
      ->type_name("N")
      ->group("Interventions");
  command->add_option("-s,--seed", generation.sampling.seed, "The same seed writes the same text")
      ->check(any_seed())
      ->capture_default_str()
      ->group("Sampling");
  command->callback([options] { generate_text(*options); });
}

}  // namespace heed::cli
