// The translator of the public facade.
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

Translator::Translator(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;
Translator::~Translator() = default;

Translator Translator::load(const std::string& name_or_directory, const LoadOptions& options) {
  return Translator(std::make_unique<Parts>(
      Parts{load_translator(name_or_directory, options, TokenizerNeed::optional)}));
}

const std::string& Translator::name() const { return parts_->loaded.name; }

bool Translator::has_tokenizer() const {
  return parts_->loaded.tokenizers.source != nullptr && parts_->loaded.tokenizers.target != nullptr;
}

ModelArchitecture Translator::architecture(std::string_view stack) const {
  require(stack == "encoder" || stack == "decoder", ErrorCode::invalid_argument,
          "the stack is '{}', expected encoder or decoder", stack);
  return describe_architecture(parts_->loaded.model,
                               stack == "encoder" ? StackSite::encoder : StackSite::decoder);
}

std::vector<std::int32_t> Translator::encode(std::string_view source) const {
  return parts_->loaded.encode(source, "the text");
}

std::string Translator::decode(std::span<const std::int32_t> target) const {
  return parts_->loaded.decode(target);
}

std::vector<std::string> Translator::source_pieces(std::span<const std::int32_t> tokens) const {
  return pieces_of(parts_->loaded.tokenizers.source.get(), tokens);
}

std::vector<std::string> Translator::target_pieces(std::span<const std::int32_t> tokens) const {
  return pieces_of(parts_->loaded.tokenizers.target.get(), tokens);
}

std::vector<Translator::Translation> Translator::translate(std::span<const std::string> texts,
                                                           const TranslateOptions& options) const {
  const LoadedTranslator& loaded = parts_->loaded;
  SourceTokens sources;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    sources.add(loaded.encode(
        texts[i], texts.size() > 1 ? fmt::format("text {}", i + 1) : std::string("the text")));
  }
  const auto found = loaded.translate(sources, beam_options(options));
  std::vector<Translation> translations(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto source = sources.source(static_cast<std::int64_t>(i));
    Translation& translation = translations[i];
    translation.source.assign(source.begin(), source.end());
    for (const TokenHypothesis& hypothesis : found[i]) {
      translation.hypotheses.push_back({.text = loaded.decode(hypothesis.tokens),
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

std::vector<Translator::Hypothesis> Translator::translate(std::string_view text,
                                                          const TranslateOptions& options) const {
  const std::string one(text);
  return translate(std::span(&one, 1), options).front().hypotheses;
}

Array Translator::cross_attention(std::span<const std::int32_t> source,
                                  std::span<const std::int32_t> target) const {
  return make_array(heed::cross_attention(parts_->loaded.model, source, target));
}

}  // namespace heed
