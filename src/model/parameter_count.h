// Parameters by part, and the memory and operations that a model takes to run and to train.
#pragma once

#include <cstdint>
#include <vector>

#include "model/architecture.h"

namespace heed {

struct ParameterCount {
  // One head's four matrices, each C·D: into query, key and value space (value "down" from C to D)
  // and back to the stream (value "up", the head's share of the output projection). Heads of a
  // group share key and value "down".
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
  std::int64_t biases = 0;  // of all linear layers
  std::int64_t norms = 0;   // gains and biases of all norms
  // V·C, or 0 when tied to the embedding; and a prediction head's C·C
  std::int64_t unembedding = 0;
  std::int64_t total = 0;
};

// Of one stack with its own token embedding, cross-attention included: a decoder may be one of two.
ParameterCount count_parameters(const StackSpecification& config);
// Of both stacks, whose token embedding counts once. Blocks and heads are the last stack's.
ParameterCount count_parameters(const Architecture& architecture);

// Weights of the blocks of one stack, without biases and norms.
struct StackCount {
  StackSite site = StackSite::only;
  std::int64_t attention = 0;
  std::int64_t cross_attention = 0;
  std::int64_t feed_forward = 0;
};
std::vector<StackCount> count_stacks(const Architecture& architecture);

struct ModelCost {
  std::int64_t key_value_bytes_per_token = 0;  // f32: 2·L·K·4
  std::int64_t run_bytes = 0;        // f32 weights and the keys and values of one full context
  std::int64_t train_bytes = 0;      // f32 weights, gradients and two moments, without activations
  double flops_per_token = 0;        // forward at full context: 2·(N - embeddings) + 2·L·A·T
  double train_flops_per_token = 0;  // forward and backward, three times as many
};

// Attention is counted over a context of T = config.context tokens: with the causal mask a token
// attends to T/2 others on average, or to fewer in a window, at 4·A operations each (score and
// value) in each layer.
// Positions that a query of a sequence of T attends to on average: T/2, or fewer in a window.
double mean_attended(const AttentionSpecification& attention, std::int64_t layer,
                     std::int64_t positions);

// Operations of attention for each token of a sequence of T: 4·A·mean_attended in each layer.
double attention_flops_per_token(const StackSpecification& config, std::int64_t positions);

ModelCost model_cost(const StackSpecification& config);

}  // namespace heed
