// Tests whether predictions depend on attention: cuts attention edges that the ground truth of a
// microworld story says are needed, and as many control edges, and compares the predictions.
#pragma once

#include <cstdint>

#include "microscope/microworld/microworld_check.h"

namespace heed {

// Predictions of true next tokens: unchanged, with the edges cut in every head of every layer (and
// each row of the pattern renormalised), and with as many control edges of the same queries cut.
struct CausalEffect {
  std::int64_t cases = 0;
  double probability = 0;  // mean, of the true token
  double probability_cut = 0;
  double probability_control = 0;
  double accuracy = 0;  // share of cases in which the true token is the most likely
  double accuracy_cut = 0;
  double accuracy_control = 0;
};

struct MicroworldCausality {
  // From a noun to its adjectives. The token after the noun depends on one of its adjectives only.
  // Control: the tokens before the adjectives.
  CausalEffect noun_to_adjectives;
  // From the last word before the murderer's name to the clue sentence. Control: the tokens after
  // that sentence.
  CausalEffect last_word_to_clue;
  // The same from all words after the clue, which also removes indirect paths to the last word.
  CausalEffect all_words_to_clue;
};

// Uses the same stories as check_microworld and throws what it throws. Skips stories longer than
// the context, and marks with too few control tokens. Means without cases are NaN.
MicroworldCausality check_microworld_causality(const Gpt& gpt, const Tokenizer& tokenizer,
                                               const MicroworldCheckOptions& options);

}  // namespace heed
