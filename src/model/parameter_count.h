// Parameters by part, and the memory and operations that a model takes to run and to train.
#pragma once

#include <cstdint>

#include "model/config.h"

namespace heed {

struct ParameterCount {
  // One head's four matrices, each C·D: into query, key and value space (value "down" from C to D)
  // and back to the stream (value "up", the head's share of the output projection).
  struct Head {
    std::int64_t query = 0;
    std::int64_t key = 0;
    std::int64_t value_down = 0;
    std::int64_t value_up = 0;
    std::int64_t total = 0;
  };

  std::int64_t embedding = 0;  // V·C
  std::int64_t position = 0;   // context·C
  Head per_head;
  std::int64_t attention_block = 0;     // weights of all heads of a block, without biases
  std::int64_t attention_total = 0;     // of all blocks
  std::int64_t feed_forward_block = 0;  // weights, without biases
  std::int64_t feed_forward_total = 0;
  std::int64_t biases = 0;       // of all linear layers
  std::int64_t norms = 0;        // gains and biases of all norms
  std::int64_t unembedding = 0;  // V·C, or 0 when tied to the embedding
  std::int64_t total = 0;
};

ParameterCount count_parameters(const GptConfig& config);

struct ModelCost {
  std::int64_t key_value_bytes_per_token = 0;  // f32: 2·L·A·4
  std::int64_t run_bytes = 0;        // f32 weights and the keys and values of one full context
  std::int64_t train_bytes = 0;      // f32 weights, gradients and two moments, without activations
  double flops_per_token = 0;        // forward at full context: 2·(N - embeddings) + 2·L·A·T
  double train_flops_per_token = 0;  // forward and backward, three times as many
};

// Attention is counted over a context of T = config.context tokens: with the causal mask a token
// attends to T/2 others on average, at 4·A operations each (score and value) in each layer.
ModelCost model_cost(const GptConfig& config);

}  // namespace heed
