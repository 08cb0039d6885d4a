#include <fmt/format.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/pair_options.h"
#include "engine/embedded_files.h"
#include "microscope/traces/recorded_pass.h"

namespace heed::cli {

void add_target_options(Command command, PairOptions& options, const std::string& default_target) {
  command
      .add_option_function<std::string>(
          "--target", [&options](const std::string& text) { options.target = text; },
          fmt::format("Translator: the target text [{}]", default_target))
      ->type_name("TEXT");
  add_list_option(command, "--target-tokens", options.target_tokens,
                  "Translator: give the target as token ids, its start first")
      ->type_name("ID,…");
}

void choose_translator(Command command, std::string& model) {
  if (command.count("--model") == 0) model = embedded_translator_name;
}

void require_no_pair_options(const PairOptions& options, const LoadedModel& model) {
  if (!options.any() || model.is_translator()) return;
  fail_usage(fmt::format("'{}' has one stack: --target and --target-tokens need a translator",
                         model.name));
}

std::vector<std::int32_t> read_target(const PairOptions& options, const LoadedModel& model) {
  if (options.target && !options.target_tokens.empty()) {
    fail_usage("give one of --target and --target-tokens, not both");
  }
  return options.target ? model.encode_target(*options.target)
                        : parse_token_ids(options.target_tokens);
}

ModelTexts read_texts(const TextOptions& text, const PairOptions& options,
                      const LoadedModel& model) {
  require_no_pair_options(options, model);
  if (!model.is_translator()) {
    return {.tokens = {.source = {}, .target = read_tokens(text, model)}};
  }
  const bool has_ids = !text.tokens.empty() && !text.text && text.file.empty();
  std::vector<std::int32_t> source =
      has_ids ? parse_token_ids(text.tokens) : model.encode_source(read_text(text));
  if (!options.any()) {
    return translated_pair(model, std::move(source), interrupt_flag());
  }
  ModelTexts texts;
  texts.tokens.source = std::move(source);
  texts.tokens.target = read_target(options, model);
  require_texts_fit(model.architecture(), texts.tokens);
  return texts;
}

}  // namespace heed::cli
