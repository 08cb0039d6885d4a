// What a model has learned of the microworld, measured against the truth that its stories carry.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "model/gpt.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct MicroworldCheckOptions {
  std::int64_t stories = 1000;
  std::uint64_t seed = 0;  // of the stories; a model is to be checked on another than it learned
  std::int64_t batch_size = 16;
  ProgressCallback progress;
  StopFlag stop = nullptr;
};

// What could not be measured, for lack of stories with such marks, is NaN.
struct MicroworldCheck {
  std::int64_t stories = 0;

  // Of a story's tokens and the <|endoftext|> that ends it, read from an <|endoftext|> on.
  double loss_nats_per_story = 0;
  double entropy_nats_per_story = 0;  // of the same stories under the grammar: no model does better

  // How often an ambiguous word's vector lies nearest to the mean of the vectors that have the same
  // sense, over words; each half of the stories is judged by the means of the other. The vector is
  // the final one at the word's last token, or, static, the embedding of that token. Recalled
  // words, named once more where nothing that follows needs their sense, are judged apart.
  double sense_accuracy = 0;
  double static_sense_accuracy = 0;
  std::int64_t sense_marks = 0;
  double recalled_sense_accuracy = 0;
  std::int64_t recalled_sense_marks = 0;

  // How often greedy decoding names the murderer, and the least number of tokens that stand between
  // the sentence that gives him away and his name.
  double culprit_accuracy = 0;
  std::int64_t culprit_min_distance = 0;  // −1 without mysteries
  std::int64_t mysteries = 0;

  // The attention that a noun pays to its own adjectives, all of it being 1, in the head that pays
  // most.
  double adjective_mass = 0;
  std::string adjective_head;  // "LAYER.HEAD", counted from 0
  std::int64_t adjective_nouns = 0;
};

// Throws Error{invalid_argument} for fewer than two stories or a tokenizer without <|endoftext|>,
// Error{interrupted} on request. A story longer than the model's context is read in several windows
// that overlap by half a context.
MicroworldCheck check_microworld(const Gpt& gpt, const Tokenizer& tokenizer,
                                 const MicroworldCheckOptions& options);

}  // namespace heed
