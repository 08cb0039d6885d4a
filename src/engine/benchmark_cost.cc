#include "engine/benchmark_cost.h"

#include "model/cache.h"
#include "model/parameter_count.h"

namespace heed {
namespace {

using kernels::PreparedWeight;
using kernels::WeightFormat;

constexpr double f32 = 4;  // bytes

// Bytes of one element of a matrix.
double element_bytes(WeightFormat format) {
  constexpr double scale = 2.0 / real(PreparedWeight::group);  // one in bf16 for a group
  switch (format) {
    case WeightFormat::f32: return f32;
    case WeightFormat::bf16: return 2;
    case WeightFormat::int8: return 1 + scale;
    case WeightFormat::int4: return 0.5 + scale;
  }
  return f32;
}

// Bytes of the keys and values of one position, in all layers.
double key_value_bytes(const GptConfig& config, kernels::CacheType type) {
  return real(cache_bytes(config, type, 1));
}

// 2·L·A·T: a position sees T/2 others on average, each costs 4·A operations in each layer.
double attention_flops_per_token(const GptConfig& config, std::int64_t positions) {
  return 2 * real(config.layers) * real(config.attention_width()) * real(positions);
}

// (B, T, H, D)
double elements(const AttentionShape& shape) {
  return real(shape.batch) * real(shape.positions) * real(shape.heads) * real(shape.head_size);
}

// Unmasked pairs of query and key.
double visible_pairs(const AttentionShape& shape) {
  return real(shape.batch * shape.heads) * real(shape.positions) * real(shape.positions + 1) / 2;
}

}  // namespace

double weight_bytes(const GptConfig& config, WeightFormat format) {
  const ParameterCount count = count_parameters(config);
  const double matrices = real(count.attention_total + count.feed_forward_total) +
                          real(config.vocabulary_size) * real(config.channels);
  return matrices * element_bytes(format) + real(count.norms + count.biases) * f32;
}

WorkCost training_step_cost(const GptConfig& config, std::int64_t batch, std::int64_t positions) {
  const double parameters = real(count_parameters(config).total);
  const double per_token =
      6 * parameters + 3 * attention_flops_per_token(config, positions);  // 6·N + 6·L·A·T
  // Weights are read forward and backward and gradients written; then the update reads parameters,
  // gradients and two moments and writes all but the gradients.
  constexpr double passes = 2 + 1 + 4 + 3;
  return {.flops = per_token * real(batch) * real(positions), .bytes = passes * f32 * parameters};
}

WorkCost update_cost(const GptConfig& config) {
  constexpr double passes = 1 + 4 + 3;  // the norm of the gradients, then AdamW
  return {.bytes = passes * f32 * real(count_parameters(config).total)};
}

WorkCost prompt_cost(const GptConfig& config, const RunFormats& formats, std::int64_t batch,
                     std::int64_t positions) {
  const ParameterCount count = count_parameters(config);
  const double inside = real(count.total - count.embedding - count.position - count.unembedding);
  const double tokens = real(batch) * real(positions);
  return {.flops = tokens * (2 * inside + attention_flops_per_token(config, positions)),
          .bytes = weight_bytes(config, formats.weights) +
                   tokens * key_value_bytes(config, formats.cache)};
}

double projection_flops(const GptConfig& config) {
  return 2 * real(config.vocabulary_size) * real(config.channels);
}

WorkCost decoding_cost(const GptConfig& config, const RunFormats& formats, std::int64_t batch,
                       std::int64_t position) {
  const ParameterCount count = count_parameters(config);
  const double inside = real(count.total - count.embedding - count.position - count.unembedding);
  const double seen = real(position + 1);  // the token itself too
  const double attention = 4 * real(config.layers) * real(config.attention_width()) * seen;
  return {.flops = real(batch) * (2 * inside + projection_flops(config) + attention),
          .bytes = weight_bytes(config, formats.weights) +
                   real(batch) * seen * key_value_bytes(config, formats.cache)};
}

WorkCost attention_forward_cost(const AttentionShape& shape) {
  // Two products, scores and values; query, key, value and out go through memory once.
  return {.flops = 2 * 2 * real(shape.head_size) * visible_pairs(shape),
          .bytes = 4 * f32 * elements(shape)};
}

WorkCost attention_backward_cost(const AttentionShape& shape) {
  // Five products: the scores again, and the gradients of pattern, query, key and value. Query,
  // key, value, out and its gradient are read; three gradients are written.
  return {.flops = 5 * 2 * real(shape.head_size) * visible_pairs(shape),
          .bytes = 8 * f32 * elements(shape)};
}

}  // namespace heed
