// A tokenized pair of the microworld in two languages, with its words as positions of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "microscope/attention/pair_statistics.h"
#include "microscope/traces/pair_pass.h"
#include "microworld/bilingual/bilingual.h"
#include "scoring/alignment_error.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct MarkedPair {
  PairTokens tokens;
  std::vector<std::int32_t> next;  // what the decoder is to write: the target and its end
  std::vector<TextWord> source_words;
  std::vector<TextWord> target_words;  // positions in tokens.target
  std::vector<bool> is_content;        // of each word of the target: it always has a counterpart
  scoring::TrueAlignment truth;
  double log_probability = 0;  // of the target given the source under the grammar

  PairWords words() const { return {source_words, target_words}; }
};

// Throws Error{invalid_argument} for a model that does not say with which token its decoder starts
// or ends.
MarkedPair mark_pair(const microworld::bilingual::Pair& pair, const Architecture& architecture,
                     const TranslationTokenizers& tokenizers);

}  // namespace heed
