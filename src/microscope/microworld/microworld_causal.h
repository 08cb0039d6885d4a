// Does a model use what its attention shows? Edges of attention are cut where the truth of a
// microworld story says that they matter, and elsewhere, and predictions are compared.
#pragma once

#include <cstdint>

#include "microscope/microworld/microworld_check.h"

namespace heed {

// Predictions of true next tokens: as they are, with the edges cut in every head of every layer
// (the rest of each row of the pattern scaled to sum to one), and with as many edges of the same
// queries cut that lead elsewhere.
struct CausalEffect {
  std::int64_t cases = 0;
  double probability = 0;  // mean, of the true token
  double probability_cut = 0;
  double probability_control = 0;
  double accuracy = 0;  // how often the true token is the likeliest
  double accuracy_cut = 0;
  double accuracy_control = 0;
};

struct MicroworldCausality {
  // From a noun to its adjectives. The token after the noun begins what one of them means; without
  // them nothing says which. Elsewhere: the tokens before the adjectives.
  CausalEffect noun_to_adjectives;
  // From the last word before the murderer's name to the sentence that gives him away. Elsewhere:
  // the tokens behind that sentence.
  CausalEffect last_word_to_clue;
  // The same from all words behind the clue: what they passed on to the last word is cut too.
  CausalEffect all_words_to_clue;
};

// Reads the same stories as check_microworld and throws what it throws; stories longer than the
// context, and marks with too few tokens elsewhere, are left out. What there was none of is NaN.
MicroworldCausality check_microworld_causality(const Gpt& gpt, const Tokenizer& tokenizer,
                                               const MicroworldCheckOptions& options);

}  // namespace heed
