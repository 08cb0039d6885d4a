#include "engine/training_translator.h"

#include "generate/translate.h"

namespace heed {

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
