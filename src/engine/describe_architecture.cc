#include "engine/describe_architecture.h"

#include "model/parameter_count.h"

namespace heed {
namespace {

std::vector<std::int64_t> layer_windows(const StackSpecification& config) {
  std::vector<std::int64_t> windows;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    windows.push_back(config.block.attention.window(layer));
  }
  return windows;
}

}  // namespace

ModelArchitecture describe_architecture(const Transformer& gpt) {
  const StackSpecification& config = gpt.specification();
  const AttentionSpecification& attention = config.block.attention;
  const NormSpecification& norm = config.block.norm;
  const bool rotary = attention.positions == PositionKind::rotary;
  return {.vocabulary = config.vocabulary_size,
          .context = config.context,
          .channels = config.channels,
          .layers = config.layers,
          .query_heads = attention.query_heads,
          .key_value_heads = attention.key_value_heads,
          .head_size = attention.head_size,
          .parameters = count_parameters(config).total,
          .positions = position_kind_name(attention.positions),
          .rotary_base = rotary ? attention.rotary.base : 0,
          .rotary_channels = rotary ? attention.rotary_channels() : 0,
          .windows = layer_windows(config),
          .query_key_norm = attention.query_key_norm,
          .norm = norm_kind_name(norm.kind),
          .norm_placement = norm.placement == NormPlacement::post ? "post" : "pre",
          .norm_epsilon = norm.epsilon,
          .parallel = config.is_parallel(),
          .feed_forward = config.feed_forward(),
          .activation = activation_name(config.block.feed_forward.activation),
          .gated = config.block.feed_forward.gated,
          .biases = has_biases(config),
          .tied_unembedding = config.tied_unembedding,
          .weights = std::string(kernels::weight_format_name(gpt.parameters().prepared_format()))};
}

}  // namespace heed
