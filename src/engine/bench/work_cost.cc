#include "engine/bench/work_cost.h"

#include <algorithm>

#include "model/cache.h"
#include "model/parameter_count.h"
#include "model/parameters.h"

namespace heed {
namespace {

using kernels::WeightFormat;

constexpr double f32 = 4;  // bytes

// Bytes of the keys and values of one position, in all layers.
double key_value_bytes(const StackSpecification& config, kernels::CacheType type) {
  return real(cache_bytes(config, type, 1));
}

// Positions of the memory that a query after `position` others reads, summed over all layers.
double read_positions(const StackSpecification& config, std::int64_t position) {
  double sum = 0;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::int64_t window = config.block.attention.window(layer);
    sum += real(window > 0 ? std::min(window, position + 1) : position + 1);
  }
  return sum;
}

// (B, T, H, D)
double elements(const AttentionShape& shape) {
  return real(shape.batch) * real(shape.positions) * real(shape.heads) * real(shape.head_size);
}

// Unmasked pairs of query and key.
double visible_pairs(const AttentionShape& shape) {
  return real(shape.batch * shape.heads) * real(shape.positions) * real(shape.positions + 1) / 2;
}

// The weights that every token of a stack meets. Embeddings are looked up, and the unembedding is
// counted where there are logits.
struct StackWeights {
  double matrices = 0;
  double vectors = 0;  // biases and norms
  double bytes(kernels::WeightFormat format) const {
    return matrices * element_bytes(format) + vectors * 4;
  }
  double count() const { return matrices + vectors; }
};
struct PairWeights {
  StackWeights encoder;
  StackWeights memory;  // projections of the encoder's result to keys and values
  StackWeights decoder;
};

PairWeights pair_weights(const Architecture& architecture) {
  PairWeights weights;
  for (const Parameter& parameter : parameters_of(architecture)) {
    const auto& [role, part, layer, site] = parameter.id;
    const bool is_vector = is_norm(role) || part == Part::bias;
    if (!is_vector && (!is_linear(role) || role == Role::unembedding)) continue;
    StackWeights& stack = site == StackSite::encoder      ? weights.encoder
                          : role == Role::cross_key_value ? weights.memory
                                                          : weights.decoder;
    (is_vector ? stack.vectors : stack.matrices) += real(parameter.shape.size());
  }
  return weights;
}

// Of the queries of a position, in all layers: 4·A for each position that it attends to.
double cross_flops(const StackSpecification& decoder, std::int64_t sources) {
  return 4 * real(decoder.layers) * real(decoder.block.cross_attention->query_width()) *
         real(sources);
}

double cross_cache_bytes(const StackSpecification& decoder, kernels::CacheType type) {
  const AttentionSpecification& cross = *decoder.block.cross_attention;
  return 2 * real(decoder.layers) * real(cross.key_value_heads) *
         real(kernels::cache_row_bytes_with_scale(type, cross.head_size));
}

WorkCost operator+(const WorkCost& a, const WorkCost& b) {
  return {.flops = a.flops + b.flops, .bytes = a.bytes + b.bytes};
}

double encoding_flops(const Architecture& architecture, const PairWeights& weights,
                      const PairShape& shape) {
  return real(shape.pairs) * real(shape.sources) *
         (2 * (weights.encoder.count() + weights.memory.count()) +
          attention_flops_per_token(architecture.encoder(), shape.sources));
}

}  // namespace

double element_bytes(WeightFormat format) { return kernels::bytes_per_weight(format); }

double training_step_bytes(double parameters) {
  constexpr double passes = 2 + 1 + 4 + 3;
  return passes * f32 * parameters;
}

double weight_bytes(const StackSpecification& config, WeightFormat format) {
  const ParameterCount count = count_parameters(config);
  const double matrices = real(count.attention_total + count.feed_forward_total) +
                          real(config.vocabulary_size) * real(config.channels);
  return matrices * element_bytes(format) + real(count.norms + count.biases) * f32;
}

WorkCost training_step_cost(const StackSpecification& config, std::int64_t batch,
                            std::int64_t positions) {
  const double parameters = real(count_parameters(config).total);
  const double per_token =
      6 * parameters + 3 * attention_flops_per_token(config, positions);  // 6·N + 6·L·A·T
  return {.flops = per_token * real(batch) * real(positions),
          .bytes = training_step_bytes(parameters)};
}

WorkCost update_cost(const StackSpecification& config) {
  constexpr double passes = 1 + 4 + 3;  // the norm of the gradients, then AdamW
  return {.bytes = passes * f32 * real(count_parameters(config).total)};
}

WorkCost prompt_cost(const StackSpecification& config, const RunFormats& formats,
                     std::int64_t batch, std::int64_t positions) {
  const ParameterCount count = count_parameters(config);
  const double inside = real(count.total - count.embedding - count.position - count.unembedding);
  const double tokens = real(batch) * real(positions);
  return {.flops = tokens * (2 * inside + attention_flops_per_token(config, positions)),
          .bytes = weight_bytes(config, formats.weights) +
                   tokens * key_value_bytes(config, formats.cache)};
}

double projection_flops(const StackSpecification& config) {
  return 2 * real(config.vocabulary_size) * real(config.channels);
}

WorkCost cached_attention_cost(const StackSpecification& config, kernels::CacheType cache,
                               std::int64_t position) {
  const double seen = read_positions(config, position);  // the token itself too
  return {.flops = 4 * real(config.attention_width()) * seen,
          .bytes = seen * key_value_bytes(config, cache) / real(config.layers)};
}

WorkCost decoding_cost(const StackSpecification& config, const RunFormats& formats,
                       std::int64_t batch, std::int64_t position) {
  const ParameterCount count = count_parameters(config);
  const double inside = real(count.total - count.embedding - count.position - count.unembedding);
  const WorkCost attention = cached_attention_cost(config, formats.cache, position);
  return {.flops = real(batch) * (2 * inside + projection_flops(config) + attention.flops),
          .bytes = weight_bytes(config, formats.weights) + real(batch) * attention.bytes};
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

WorkCost pair_step_cost(const Architecture& architecture, const PairShape& shape) {
  const StackSpecification& decoder = architecture.decoder();
  const PairWeights weights = pair_weights(architecture);
  const double decoding =
      real(shape.pairs) * real(shape.targets) *
      (2 * weights.decoder.count() + projection_flops(decoder) +
       attention_flops_per_token(decoder, shape.targets) + cross_flops(decoder, shape.sources));
  return {.flops = 3 * (encoding_flops(architecture, weights, shape) + decoding),
          .bytes = training_step_bytes(real(count_parameters(architecture).total))};
}

WorkCost encoding_cost(const Architecture& architecture, const RunFormats& formats,
                       const PairShape& shape) {
  const PairWeights weights = pair_weights(architecture);
  return {.flops = encoding_flops(architecture, weights, shape),
          .bytes = weights.encoder.bytes(formats.weights) + weights.memory.bytes(formats.weights) +
                   real(shape.pairs) * real(shape.sources) *
                       cross_cache_bytes(architecture.decoder(), formats.cache)};
}

WorkCost translation_cost(const Architecture& architecture, const RunFormats& formats,
                          const PairShape& shape, std::int64_t beams) {
  const StackSpecification& decoder = architecture.decoder();
  const PairWeights weights = pair_weights(architecture);
  const double per_token =
      2 * weights.decoder.count() + projection_flops(decoder) + cross_flops(decoder, shape.sources);
  const double read_once =
      weights.decoder.bytes(formats.weights) +
      real(decoder.vocabulary_size) * real(decoder.channels) * element_bytes(formats.weights) +
      real(shape.pairs) * real(shape.sources) * cross_cache_bytes(decoder, formats.cache);
  WorkCost cost = encoding_cost(architecture, formats, shape);
  for (std::int64_t step = 0; step < shape.targets; ++step) {
    const double hypotheses = real(shape.pairs) * (step == 0 ? 1 : real(beams));
    const WorkCost own = cached_attention_cost(decoder, formats.cache, step);
    cost = cost + WorkCost{.flops = hypotheses * (per_token + own.flops),
                           .bytes = read_once + hypotheses * own.bytes};
  }
  return cost;
}

}  // namespace heed
