// What a model has learned about the microworld, measured against the ground truth of its stories.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "model/gpt.h"
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
MicroworldCheck check_microworld(const Gpt& gpt, const Tokenizer& tokenizer,
                                 const MicroworldCheckOptions& options);

}  // namespace heed
