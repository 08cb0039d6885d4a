// Translation with an encoder and a decoder (Marian, BART, T5, heed's own).
//
//   heed::Translator translator = heed::Translator::load("opus-mt-en-de");
//   for (const auto& found : translator.translate("A dog runs.", {.n_best = 3})) {
//     found.text; found.score;
//   }
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/heed.h"

namespace heed {

// Beam search; scores and lengths as Hugging Face's generate() counts them: the end of a
// translation is one of its tokens, the token that decoding starts from is not.
struct TranslateOptions {
  std::int64_t beams = 5;       // hypotheses that go on at each step; 1: greedy
  double length_penalty = 1.0;  // score = log p / tokens^length_penalty; higher: longer ones
  std::int64_t n_best = 1;      // hypotheses returned for each text, at most `beams`
  // Tokens of a translation. 0: three for each of the source and 16 more. Never more than the
  // decoder's context.
  std::int64_t max_length = 0;
  // Also the cross-attention of the best hypothesis of each text.
  bool alignment = false;
  std::function<void(std::int64_t done, std::int64_t texts)> progress{};
  const std::atomic<bool>* stop = nullptr;  // set to true to stop: throws Error{interrupted}
};

// Whether a name that Model::load() and Translator::load() take is that of a translator.
bool is_translator(const std::string& name_or_directory);

class Translator {
 public:
  struct Hypothesis {
    std::string text;
    std::vector<std::int32_t> tokens;  // of the target; the last is its end, if it is finished
    double log_probability = 0;        // of the tokens, given the source
    double score = 0;
    bool finished = false;  // false: cut off at the longest length
  };

  struct Translation {
    std::vector<std::int32_t> source;    // tokens that the encoder reads
    std::vector<Hypothesis> hypotheses;  // the best first
    // (L, H, T, S) of the best one, with TranslateOptions::alignment: what each head of each layer
    // of the decoder attends to in the source when it writes token t.
    Array cross_attention;
  };

  // A directory in Hugging Face's layout or of a run of `heed train` on pairs, or a model that
  // `heed pull` downloaded. Weights in f32 are packed if memory allows (LoadOptions::pack is not
  // needed). Throws what Model::load throws, and Error{unsupported} for a model without an encoder.
  // Without tokenizers, functions of texts throw Error{not_found}.
  static Translator load(const std::string& name_or_directory, const LoadOptions& options = {});

  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;
  ~Translator();

  const std::string& name() const;
  bool has_tokenizer() const;  // of its sources and of its targets
  // Of the "encoder" or the "decoder", with the parameters of both together. Throws
  // Error{invalid_argument} for another stack.
  ModelArchitecture architecture(std::string_view stack = "decoder") const;

  // The tokens of a source, with those that the tokenizer puts around it; the text of tokens of a
  // target, without special ones.
  std::vector<std::int32_t> encode(std::string_view source) const;
  std::string decode(std::span<const std::int32_t> target) const;

  // The text of each token, for people.
  std::vector<std::string> source_pieces(std::span<const std::int32_t> tokens) const;
  std::vector<std::string> target_pieces(std::span<const std::int32_t> tokens) const;

  // Translates texts, short and long ones together, in their order. A result does not depend on
  // the other texts. Throws Error{invalid_argument}, naming the text by its number from 1, for one
  // that is empty, not UTF-8 or longer than the encoder reads.
  std::vector<Translation> translate(std::span<const std::string> texts,
                                     const TranslateOptions& options = {}) const;
  std::vector<Hypothesis> translate(std::string_view text,
                                    const TranslateOptions& options = {}) const;

  // Cross-attention (L, H, T, S) of any pair of tokens; `target` has its end if it is to be seen.
  Array cross_attention(std::span<const std::int32_t> source,
                        std::span<const std::int32_t> target) const;

 private:
  friend struct TranslatorAccess;
  struct Parts;
  explicit Translator(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace heed
