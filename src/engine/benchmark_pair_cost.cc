#include "engine/benchmark_pair_cost.h"

#include "model/parameter_count.h"
#include "model/parameters.h"

namespace heed {
namespace {

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
