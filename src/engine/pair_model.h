// An encoder-decoder with its tokenizers, as those who look into its passes use it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "microscope/attention/text_words.h"
#include "microscope/intervene/pair_effects.h"
#include "model/transformer.h"
#include "tokenizer/reading.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct PairModel {
  std::string name;
  std::shared_ptr<const Transformer> model;
  std::shared_ptr<const Tokenizer> source_tokenizer;  // null: tokens have no text
  std::shared_ptr<const Tokenizer> target_tokenizer;
  std::shared_ptr<const ReadingRecord> reading{};  // what it has read; null: nothing is known

  const Architecture& architecture() const { return model->architecture(); }
  const Tokenizer* tokenizer(PairSide side) const {
    return side == PairSide::source ? source_tokenizer.get() : target_tokenizer.get();
  }

  // A source with the tokens that its tokenizer puts around texts. Throws Error{invalid_argument}
  // for an empty text, and Error{not_found} where there is no tokenizer.
  std::vector<std::int32_t> encode_source(std::string_view text) const;
  // A target as the decoder reads it: its start, the tokens that its tokenizer begins texts with,
  // and the text, without an end.
  std::vector<std::int32_t> encode_target(std::string_view text) const;

  // A part of a text, without any tokens around it.
  std::vector<std::int32_t> encode_part(PairSide side, std::string_view text) const;

  // The text of a translation, without special tokens.
  std::string target_text(std::span<const std::int32_t> tokens) const;

  // The bytes of each token; "#17" where there is no tokenizer or it has no such token.
  std::vector<std::string> token_bytes(PairSide side, std::span<const std::int32_t> ids) const;
  // The words of a text and the tokens between them, as units_of(); each special token by itself.
  std::vector<TextWord> words(PairSide side, std::span<const std::int32_t> ids) const;
};

// The target is the greedy translation of the source where `target` is empty.
struct PairTexts {
  Texts tokens;
  bool is_translation = false;
};
PairTexts translated_pair(const PairModel& model, std::vector<std::int32_t> source,
                          StopFlag stop = nullptr);

}  // namespace heed
