// Hiding tokens for a masked language model (Devlin et al. 2019, 3.1): of the tokens that it
// predicts, 80 % become the mask token, 10 % a random one, and 10 % stay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "tensor/tensor.h"
#include "tokenizer/tokenizer.h"
#include "train/batch_order.h"
#include "train/evaluation.h"
#include "train/settings.h"
#include "train/token_data.h"

namespace heed {

// Throws Error{invalid_argument} for a tokenizer without a mask token; `name` is the setting's.
void require_mask_token(const Tokenizer& tokenizer, const std::string& name);

// Another choice of tokens for every sequence of every pass, all functions of the seed.
class MaskedBatch {
 public:
  MaskedBatch(const Tokenizer& tokenizer, const TrainSettings& settings)
      : MaskedBatch(tokenizer, settings, {0, settings.batch_size}) {}
  // Hides tokens of the share's b sequences of every batch.
  MaskedBatch(const Tokenizer& tokenizer, const TrainSettings& settings, const BatchShare& share);

  // From tokens (b, T) and the tokens that follow each (b, T): ignored_target marks a position past
  // the end of the text, which is neither hidden nor predicted. Special tokens are never hidden.
  // Sequence i of a batch of B is hidden as number pass · B + i of the run.
  void hide(View<const std::int32_t> tokens, View<const std::int32_t> following,
            std::uint64_t pass);

  View<const std::int32_t> tokens() const { return tokens_; }    // (b, T), some hidden
  View<const std::int32_t> targets() const { return targets_; }  // (b, T), where they are hidden

 private:
  std::int32_t mask_;
  std::int32_t vocabulary_size_;
  std::vector<bool> is_special_;  // by token
  double fraction_;
  std::uint64_t seed_;
  std::int64_t batch_size_;
  BatchShare share_;
  Tensor<std::int32_t> tokens_;
  Tensor<std::int32_t> targets_;
};

// The mean loss of hidden tokens, the same ones in every call, in windows that lie end to end.
// `options`: batch_size, sequence_length, batches, group and stop. Throws Error{interrupted} when
// stopped.
Evaluation evaluate_masked(const Transformer& model, const TokenSequence& data,
                           const Tokenizer& tokenizer, const TrainSettings& settings,
                           const EvaluationOptions& options);

}  // namespace heed
