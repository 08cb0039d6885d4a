// Translation by the public facade.
#include <fmt/format.h>

#include "base/error.h"
#include "engine/facade.h"

namespace heed {
namespace {

BeamOptions beam_options(const TranslateOptions& options) {
  BeamOptions beam{.beams = options.beams,
                   .length_penalty = options.length_penalty,
                   .n_best = options.n_best,
                   .max_length = options.max_length,
                   .stop = options.stop};
  if (options.progress) {
    beam.progress = [&options](const Progress& now) { options.progress(now.done, now.total); };
  }
  return beam;
}

std::vector<std::string> pieces_of(const Tokenizer* tokenizer,
                                   std::span<const std::int32_t> tokens) {
  std::vector<std::string> pieces;
  for (const std::int32_t token : tokens) {
    const bool known = tokenizer != nullptr && token >= 0 && token < tokenizer->vocabulary_size();
    pieces.push_back(known ? tokenizer->token_text(token) : fmt::format("#{}", token));
  }
  return pieces;
}

}  // namespace

std::vector<std::string> Model::source_pieces(std::span<const std::int32_t> tokens) const {
  return pieces_of(parts_->translator().source_tokenizer.get(), tokens);
}

std::vector<std::string> Model::target_pieces(std::span<const std::int32_t> tokens) const {
  return pieces_of(parts_->translator().tokenizer.get(), tokens);
}

std::vector<Model::Translation> Model::translate(std::span<const std::string> texts,
                                                 const TranslateOptions& options) const {
  const LoadedModel& loaded = parts_->translator();
  SourceTokens sources;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    sources.add(loaded.encode_source(
        texts[i], texts.size() > 1 ? fmt::format("text {}", i + 1) : std::string("the text")));
  }
  const auto found = loaded.translate(sources, beam_options(options));
  std::vector<Translation> translations(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto source = sources.source(static_cast<std::int64_t>(i));
    Translation& translation = translations[i];
    translation.source.assign(source.begin(), source.end());
    for (const TokenHypothesis& hypothesis : found[i]) {
      translation.hypotheses.push_back({.text = loaded.target_text(hypothesis.tokens),
                                        .tokens = hypothesis.tokens,
                                        .log_probability = hypothesis.log_probability,
                                        .score = hypothesis.score,
                                        .finished = hypothesis.finished});
    }
    if (options.alignment) {
      translation.cross_attention = cross_attention(source, translation.hypotheses.front().tokens);
    }
  }
  return translations;
}

std::vector<Model::Hypothesis> Model::translate(std::string_view text,
                                                const TranslateOptions& options) const {
  const std::string one(text);
  return translate(std::span(&one, 1), options).front().hypotheses;
}

Array Model::cross_attention(std::span<const std::int32_t> source,
                             std::span<const std::int32_t> target) const {
  return make_array(heed::cross_attention(parts_->translator().transformer, source, target));
}

}  // namespace heed
