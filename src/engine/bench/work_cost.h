// The minimum cost of a workload: floating-point operations and bytes of memory traffic, computed
// by the formulas of docs/performance.md.
#pragma once

#include <cstdint>

#include "kernels/prepared_weight.h"
#include "kernels/quantised_cache.h"
#include "model/architecture.h"

namespace heed {

// A count, to be multiplied and divided.
constexpr double real(std::int64_t count) { return static_cast<double>(count); }

struct WorkCost {
  double flops = 0;
  double bytes = 0;

  WorkCost operator*(double times) const { return {flops * times, bytes * times}; }
};

// Bytes of one element of a matrix, with its share of a group's scale.
double element_bytes(kernels::WeightFormat format);

// Bytes of all weights read for a token: matrices in `format` (integers with the scales of their
// groups), norms and biases in f32. A token reads one row of the embeddings, which are counted only
// if the token embedding is also the unembedding.
double weight_bytes(const StackSpecification& config, kernels::WeightFormat format);

// Bytes that a training step reads and writes: weights are read forward and backward and gradients
// written; then the update reads parameters, gradients and two moments and writes all but the
// gradients.
double training_step_bytes(double parameters);

// One step over (batch, positions) tokens: forward, backward and update.
WorkCost training_step_cost(const StackSpecification& config, std::int64_t batch,
                            std::int64_t positions);

// The formats of weights and cache during inference.
struct RunFormats {
  kernels::WeightFormat weights = kernels::WeightFormat::f32;
  kernels::CacheType cache = kernels::CacheType::f32;
};

// The update alone: clipping and AdamW.
WorkCost update_cost(const StackSpecification& config);

// Prompt processing of (batch, positions) tokens, with the logits of the last position only.
WorkCost prompt_cost(const StackSpecification& config, const RunFormats& formats,
                     std::int64_t batch, std::int64_t positions);

// The logits of one position: 2·V·C.
double projection_flops(const StackSpecification& config);

// Attention of a token of one sequence, after `position` cached ones, to them and itself.
WorkCost cached_attention_cost(const StackSpecification& config, kernels::CacheType cache,
                               std::int64_t position);

// Decoding one token for each of `batch` sequences, after `position` cached ones.
WorkCost decoding_cost(const StackSpecification& config, const RunFormats& formats,
                       std::int64_t batch, std::int64_t position);

// Causal attention of every position to itself and those before it.
struct AttentionShape {
  std::int64_t batch = 1;      // B
  std::int64_t positions = 1;  // T
  std::int64_t heads = 1;      // H
  std::int64_t head_size = 1;  // D
};
WorkCost attention_forward_cost(const AttentionShape& shape);
WorkCost attention_backward_cost(const AttentionShape& shape);

// The work of an encoder-decoder: pairs of texts, all of one length.
struct PairShape {
  std::int64_t pairs = 1;    // B
  std::int64_t sources = 1;  // S: tokens of a source
  std::int64_t targets = 1;  // T: tokens of a target
};

// Forward, backward and update, with the logits of every target token.
WorkCost pair_step_cost(const Architecture& architecture, const PairShape& shape);

// The encoder, and the keys and values that cross-attention reads, projected into a cache.
WorkCost encoding_cost(const Architecture& architecture, const RunFormats& formats,
                       const PairShape& shape);

// Encoding, then T steps of decoding, the first of B hypotheses and the others of B times `beams`.
// Hypotheses of one source read its keys and values together.
WorkCost translation_cost(const Architecture& architecture, const RunFormats& formats,
                          const PairShape& shape, std::int64_t beams);

}  // namespace heed
