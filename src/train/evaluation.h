// How well a model predicts a text.
#pragma once

#include <cstdint>

#include "base/progress.h"
#include "model/gpt.h"
#include "train/token_data.h"

namespace heed {

// The mean loss, in nats a token, of predicting windows of the data from within each window.
struct EvaluationOptions {
  std::int64_t batch_size = 8;
  std::int64_t sequence_length = 0;  // 0: the model's context
  std::int64_t batches = 0;          // evenly spread over the data; 0: all of it
  ProgressCallback progress;         // tokens
  StopFlag stop = nullptr;
};

struct Evaluation {
  std::int64_t tokens = 0;    // predicted
  double nats_per_token = 0;  // mean loss
  double standard_error = 0;  // of that mean, from the spread between windows
};

// Reuses its buffers from call to call.
class Evaluator {
 public:
  Evaluator(const GptConfig& config, const EvaluationOptions& options);

  // Throws Error{invalid_argument} for fewer than two tokens, Error{interrupted} when stopped.
  Evaluation evaluate(const Gpt& gpt, const TokenData& data);

 private:
  EvaluationOptions options_;
  std::int64_t sequence_length_;
  EvaluationBuffers buffers_;
  Tensor<std::int32_t> tokens_;   // (B, T)
  Tensor<std::int32_t> targets_;  // (B, T)
};

}  // namespace heed
