// How well a model predicts the targets of pairs.
#pragma once

#include "base/progress.h"
#include "model/encoder_decoder.h"
#include "train/evaluation.h"
#include "train/pair_data.h"

namespace heed {

struct PairEvaluationOptions {
  std::int64_t batch_tokens = 4096;
  std::int64_t batches = 0;  // evenly spread over those of similar lengths; 0: all of them
  StopFlag stop = nullptr;
  Group* group = nullptr;  // as in EvaluationOptions
};

// The mean loss of target tokens, their ends included, without label smoothing; its error is from
// the spread between sentences. Throws Error{interrupted} when stopped.
Evaluation evaluate_pairs(const EncoderDecoder& model, const PairData& data,
                          const PairEvaluationOptions& options);

}  // namespace heed
