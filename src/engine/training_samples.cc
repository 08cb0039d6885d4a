#include "engine/training_samples.h"

#include <algorithm>

#include "base/error.h"
#include "generate/generator.h"
#include "generate/translate.h"

namespace heed {

std::string run_sample(const Transformer& transformer, const Tokenizer& tokenizer,
                       const TrainSettings& settings, StopFlag stop) {
  std::vector<std::int32_t> prompt{0};
  if (tokenizer.end_of_text()) {
    prompt = {*tokenizer.end_of_text()};
  } else if (tokenizer.kind() != TokenizerKind::character) {
    prompt = tokenizer.encode("\n");
  }
  const std::int64_t room = transformer.specification().context - std::ssize(prompt);
  const GenerationResult result =
      generate(transformer, &tokenizer, prompt,
               {.max_new_tokens = std::min(settings.sample_tokens, room),
                .sampling = {.seed = settings.seed},
                .stop = stop});
  require(result.finish_reason != FinishReason::interrupted, ErrorCode::interrupted,
          "stopped while generating a sample");
  return result.text;
}

std::vector<std::string> translate_sources(const Transformer& model,
                                           const TranslationTokenizers& tokenizers,
                                           std::span<const std::string> sources,
                                           const TrainSettings& settings, StopFlag stop) {
  SourceTokens tokens;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    tokens.add(encode_source(model.architecture(), *tokenizers.source, sources[i],
                             fmt::format("validation pair {}", i + 1)));
  }
  const auto found = translate_tokens(
      model, *tokenizers.target, tokens,
      {.beams = settings.beams, .length_penalty = settings.length_penalty, .stop = stop});
  std::vector<std::string> translations;
  translations.reserve(found.size());
  for (const auto& hypotheses : found) {
    translations.push_back(decode_target(*tokenizers.target, hypotheses.front().tokens));
  }
  return translations;
}

}  // namespace heed
