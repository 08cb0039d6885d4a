// What work costs at least: floating-point operations and bytes of memory, counted by the formulas
// of docs/performance.md and not measured.
#pragma once

#include <cstdint>

#include "kernels/prepared_weight.h"
#include "kernels/quantised_cache.h"
#include "model/config.h"

namespace heed {

struct WorkCost {
  double flops = 0;
  double bytes = 0;

  WorkCost operator*(double times) const { return {flops * times, bytes * times}; }
};

// Bytes of every weight that is read for a token: matrices in `format` (integers with the scales of
// their groups), norms and biases in f32. Of the embeddings a token reads one row: they count only
// where the token embedding is the vocabulary projection too.
double weight_bytes(const GptConfig& config, kernels::WeightFormat format);

// One step over (batch, positions) tokens: forward, backward and update.
WorkCost training_step_cost(const GptConfig& config, std::int64_t batch, std::int64_t positions);

// What a model that is run holds its numbers in.
struct RunFormats {
  kernels::WeightFormat weights = kernels::WeightFormat::f32;
  kernels::CacheType cache = kernels::CacheType::f32;
};

// The update alone: clipping and AdamW.
WorkCost update_cost(const GptConfig& config);

// Reading (batch, positions) tokens from the beginning, logits of the last position only.
WorkCost prompt_cost(const GptConfig& config, const RunFormats& formats, std::int64_t batch,
                     std::int64_t positions);

// The logits of one position: 2·V·C.
double projection_flops(const GptConfig& config);

// One more token of each of `batch` sequences, behind `position` that are in the cache.
WorkCost decoding_cost(const GptConfig& config, const RunFormats& formats, std::int64_t batch,
                       std::int64_t position);

// Causal attention of every position to itself and those before it.
struct AttentionShape {
  std::int64_t batch = 1;      // B
  std::int64_t positions = 1;  // T
  std::int64_t heads = 1;      // H
  std::int64_t head_size = 1;  // D
};
WorkCost attention_forward_cost(const AttentionShape& shape);
WorkCost attention_backward_cost(const AttentionShape& shape);

}  // namespace heed
