// What a model has learned about the microworld, measured against the ground truth of its stories.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/progress.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct MicroworldCheckOptions {
  std::int64_t stories = 1000;
  std::uint64_t seed = 0;  // of the stories; use another seed than for training
  std::int64_t batch_size = 16;
  ProgressCallback progress;
  StopFlag stop = nullptr;
};

// Values are NaN if no story has the marks to measure them.
struct MicroworldCheck {
  std::int64_t stories = 0;

  // Over a story's tokens and its final <|endoftext|>, starting from an initial <|endoftext|>.
  double loss_nats_per_story = 0;
  double entropy_nats_per_story = 0;  // of the same stories under the grammar: a lower bound

  // Mean over words of how often an ambiguous word's vector is nearest to the mean vector of its
  // sense; each half of the stories is classified by the means of the other half, where the sense
  // occurs in both. The vector is the final one at the word's last token, or (static) the embedding
  // of that token. Recalled mentions, whose sense nothing later depends on, are measured
  // separately.
  double sense_accuracy = 0;
  double static_sense_accuracy = 0;
  std::int64_t sense_marks = 0;
  double recalled_sense_accuracy = 0;
  std::int64_t recalled_sense_marks = 0;

  // How often greedy decoding names the murderer, and the smallest number of tokens between the
  // clue sentence and the name.
  double culprit_accuracy = 0;
  std::int64_t culprit_min_distance = 0;  // −1 without mysteries
  std::int64_t mysteries = 0;

  // The attention weight from a noun to its own adjectives, in the head with the largest.
  double adjective_mass = 0;
  std::string adjective_head;  // "LAYER.HEAD", counted from 0
  std::int64_t adjective_nouns = 0;
};

// Throws Error{invalid_argument} for fewer than two stories or a tokenizer without <|endoftext|>,
// Error{interrupted} on request. A story longer than the model's context is split into windows that
// overlap by half a context.
MicroworldCheck check_microworld(const Transformer& model, const Tokenizer& tokenizer,
                                 const MicroworldCheckOptions& options);

// Nearest-centroid classification of word vectors by sense.

// A vector of a word in one of its senses, from one of two halves of the data.
struct LabelledVector {
  std::string word;
  std::string sense;
  int half = 0;  // 0 or 1
  std::vector<float> vector;
};

// For each word, the share of its vectors whose nearest mean (Euclidean distance), among the senses
// of that word, is that of their own sense; means come from one half and vectors from the other,
// both ways. A vector whose sense the other half lacks cannot be placed and does not count. Returns
// the mean over words with at least two senses in each half; NaN if there are none.
double nearest_centroid_accuracy(const std::vector<LabelledVector>& vectors);

// Tests whether predictions depend on attention: cuts attention edges that the ground truth of a
// microworld story says are needed, and as many control edges, and compares the predictions.

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
MicroworldCausality check_microworld_causality(const Transformer& model, const Tokenizer& tokenizer,
                                               const MicroworldCheckOptions& options);

}  // namespace heed
