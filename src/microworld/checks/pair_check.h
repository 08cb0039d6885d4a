// What a translator has learned of the microworld in two languages, measured against the truth of
// its pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/alignment.h"
#include "microscope/traces/recorded_pass.h"
#include "microworld/bilingual/bilingual.h"
#include "scoring/alignment_error.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct PairCheckOptions {
  std::int64_t pairs = 1000;
  std::int64_t cut_pairs = 200;  // the first of them, on which edges are cut: two passes a word
  std::uint64_t seed = 0;        // of the pairs; use another seed than for training
  std::int64_t batch_tokens = 4096;
  ProgressCallback progress;
  StopFlag stop = nullptr;
};

// Words of the target that the truth links surely, in passes over the true pairs: those that the
// model writes, each of their tokens being the most likely one. With the edges of cross-attention
// cut, in every head of every layer, from the positions that write a word to its true source words,
// and to as many other tokens of the source; the rest of a row keeps its sum. Shares are NaN
// without words.
struct PairCuts {
  std::int64_t words = 0;
  double right = 0;
  double without_true = 0;
  double without_others = 0;
  // Geometric means of the words' probabilities.
  double probability = 0;
  double probability_without_true = 0;
  double probability_without_others = 0;
};

// The loss of the target and its end, given the source.
struct PairLoss {
  double loss_nats_per_pair = 0;
  double entropy_nats_per_pair = 0;  // of the same pairs under the grammar: a lower bound
};

struct PairCheck : PairLoss {
  std::int64_t pairs = 0;

  // Greedy translations: compared with the pairs' own, each one of several right ones; and the
  // share that the grammar can make of the source.
  double bleu = 0;
  double exact = 0;
  double grammatical = 0;

  // How well each head of cross-attention aligns the words that it writes, the best first; and the
  // error rate of linking words by their place alone.
  std::vector<HeadAlignment> heads;
  double diagonal_error_rate = 0;

  std::int64_t cut_pairs = 0;
  PairCuts all_words;
  PairCuts content_words;  // nouns, verbs, adjectives, adverbs and pronouns
};

// Throws Error{invalid_argument} for less than one pair and for pairs that do not fit the model,
// Error{interrupted} on request.
PairCheck check_pairs(const Transformer& model, const TranslationTokenizers& tokenizers,
                      const PairCheckOptions& options);

// The loss alone, in a fraction of the time. Throws as check_pairs does.
PairLoss pair_loss(const Transformer& model, const TranslationTokenizers& tokenizers,
                   const PairCheckOptions& options);

// A tokenized pair of the microworld in two languages, with its words as positions of tokens.
struct MarkedPair {
  Texts tokens;
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
