#include "model/architecture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace heed {
namespace {

void require_extent(std::int64_t value, std::int64_t largest, const char* name) {
  require(value >= 1 && value <= largest, ErrorCode::invalid_argument,
          "the model's {} must be between 1 and {}, not {}", name, largest, value);
}

void require_rate(float rate, const char* name) {
  require(rate >= 0.0F && rate < 1.0F, ErrorCode::invalid_argument,
          "{} must be at least 0 and below 1, not {}", name, rate);
}

void validate_rotary(const AttentionSpecification& attention) {
  const RotarySpecification& rotary = attention.rotary;
  require(std::isfinite(rotary.base) && rotary.base > 1, ErrorCode::invalid_argument,
          "the base of rotary positions must be above 1, not {}", rotary.base);
  require(rotary.fraction > 0 && rotary.fraction <= 1, ErrorCode::invalid_argument,
          "the rotary fraction of a head must be above 0 and at most 1, not {}", rotary.fraction);
  require(attention.rotary_channels() >= 2 && attention.rotary_channels() % 2 == 0,
          ErrorCode::invalid_argument,
          "{} of a head of {} channels rotate in pairs: expected a positive even number, not {}",
          rotary.fraction, attention.head_size, attention.rotary_channels());
  const RotaryScaling& scaling = rotary.scaling;
  const bool by_length =
      scaling.kind == RotaryScalingKind::dynamic || scaling.kind == RotaryScalingKind::longrope;
  require(rotary.local_base == 0 ||
              (std::isfinite(rotary.local_base) && rotary.local_base > 1 && !by_length),
          ErrorCode::invalid_argument,
          "the rotary base of local layers must be 0 (none) or above 1, without a scaling that "
          "depends on the length of a text, not {}",
          rotary.local_base);
  if (scaling.kind == RotaryScalingKind::none) return;
  require(std::isfinite(scaling.factor) && scaling.factor >= 1, ErrorCode::invalid_argument,
          "the factor of a rotary scaling must be at least 1, not {}", scaling.factor);
  if (scaling.kind == RotaryScalingKind::linear) return;
  require(scaling.original_context >= 1 && scaling.original_context <= max_extent,
          ErrorCode::invalid_argument,
          "a rotary scaling needs the context of pretraining, at least 1, not {}",
          scaling.original_context);
  if (scaling.kind == RotaryScalingKind::llama3) {
    require(scaling.low_frequency_factor > 0 &&
                scaling.high_frequency_factor > scaling.low_frequency_factor,
            ErrorCode::invalid_argument,
            "the low frequency factor {} of a rotary scaling must be above 0 and below the high "
            "one, {}",
            scaling.low_frequency_factor, scaling.high_frequency_factor);
  }
  if (scaling.kind == RotaryScalingKind::yarn) {
    require(scaling.slow_rotations > 0 && scaling.fast_rotations > scaling.slow_rotations,
            ErrorCode::invalid_argument,
            "beta_slow {} of a rotary scaling must be above 0 and below beta_fast, {}",
            scaling.slow_rotations, scaling.fast_rotations);
    require(std::isfinite(scaling.attention_factor) && scaling.attention_factor >= 0,
            ErrorCode::invalid_argument, "attention_factor must be 0 or more, not {}",
            scaling.attention_factor);
    for (const double magnitude : {scaling.magnitude, scaling.magnitude_all}) {
      require(std::isfinite(magnitude) && magnitude >= 0, ErrorCode::invalid_argument,
              "mscale and mscale_all_dim must be 0 or more, not {}", magnitude);
    }
  }
  if (scaling.kind == RotaryScalingKind::longrope) {
    require(std::isfinite(scaling.attention_factor) && scaling.attention_factor >= 0,
            ErrorCode::invalid_argument, "attention_factor must be 0 or more, not {}",
            scaling.attention_factor);
    for (const std::vector<double>* const factors :
         {&scaling.short_factors, &scaling.long_factors}) {
      require(std::ssize(*factors) == attention.rotary_channels() / 2, ErrorCode::invalid_argument,
              "a longrope scaling has a short and a long factor for each of {} pairs of channels: "
              "got {}",
              attention.rotary_channels() / 2, factors->size());
      for (const double factor : *factors) {
        require(std::isfinite(factor) && factor > 0, ErrorCode::invalid_argument,
                "the factors of a longrope scaling must be above 0, not {}", factor);
      }
    }
  }
  if (scaling.kind == RotaryScalingKind::dynamic) {
    require(attention.rotary_channels() >= 4, ErrorCode::invalid_argument,
            "a dynamic rotary scaling needs at least 4 channels that rotate, not {}",
            attention.rotary_channels());
  }
}

void validate_relative(const RelativePositions& relative) {
  const std::int64_t least = relative.both_directions ? 4 : 2;
  require(relative.buckets >= least && relative.buckets <= 65536 && relative.buckets % least == 0,
          ErrorCode::invalid_argument,
          "relative positions have a multiple of {} buckets, up to 65536, not {}", least,
          relative.buckets);
  require(relative.max_distance > relative.buckets / least && relative.max_distance <= max_extent,
          ErrorCode::invalid_argument,
          "the largest relative distance must be above {} and at most {}, not {}",
          relative.buckets / least, max_extent, relative.max_distance);
}

void validate_mask(const MaskSpecification& mask, std::int64_t layers) {
  require((mask.kind == MaskKind::banded) == !mask.windows.empty(), ErrorCode::invalid_argument,
          "a banded mask has a window for each layer, and no other mask has: got {} windows",
          mask.windows.size());
  if (mask.windows.empty()) return;
  require(std::ssize(mask.windows) == layers, ErrorCode::invalid_argument,
          "a banded mask of {} layers has {} windows: expected one for each layer", layers,
          mask.windows.size());
  for (const std::int64_t window : mask.windows) {
    require(window >= 0 && window <= max_extent, ErrorCode::invalid_argument,
            "an attention window must be between 0 (none) and {}, not {}", max_extent, window);
  }
}

void validate_attention(const AttentionSpecification& attention, std::int64_t layers) {
  require_extent(attention.query_heads, max_heads, "heads");
  require_extent(attention.key_value_heads, max_heads, "key/value heads");
  require_extent(attention.head_size, max_heads, "head size");
  require(attention.query_heads % attention.key_value_heads == 0, ErrorCode::invalid_argument,
          "{} query heads cannot share {} key/value heads evenly", attention.query_heads,
          attention.key_value_heads);
  require(std::isfinite(attention.scale) && attention.scale >= 0, ErrorCode::invalid_argument,
          "the scale of scores must be 0 (1/sqrt(head size)) or positive, not {}", attention.scale);
  require(std::isfinite(attention.soft_cap) && attention.soft_cap >= 0, ErrorCode::invalid_argument,
          "the soft cap of scores must be 0 (none) or positive, not {}", attention.soft_cap);
  require(attention.query_key_norm || attention.head_norms == HeadNormExtent::each_head,
          ErrorCode::invalid_argument,
          "norms of all heads together need norms of queries and keys");
  validate_mask(attention.mask, layers);
  if (attention.positions == PositionKind::rotary) validate_rotary(attention);
  if (attention.positions == PositionKind::relative) validate_relative(attention.relative);
}

}  // namespace

std::int64_t AttentionSpecification::rotary_channels() const {
  return std::llround(std::floor(rotary.fraction * static_cast<double>(head_size) + 1e-6));
}

RotarySpecification AttentionSpecification::rotary_of(std::int64_t layer) const {
  RotarySpecification own = rotary;
  if (!has_local_rotary() || window(layer) == 0) return own;
  own.base = rotary.local_base;
  own.scaling = {};
  return own;
}

float AttentionSpecification::score_scale() const {
  return scale > 0 ? scale : 1.0F / std::sqrt(static_cast<float>(head_size));
}

void StackSpecification::validate() const {
  require_extent(vocabulary_size, max_extent, "vocabulary size");
  require_extent(context, max_extent, "context");
  require_extent(channels, max_extent, "channels");
  require_extent(layers, max_layers, "layers");
  validate_attention(block.attention, layers);
  if (block.cross_attention) {
    const AttentionSpecification& cross = *block.cross_attention;
    validate_attention(cross, layers);
    require(cross.query_width() == block.attention.query_width(), ErrorCode::invalid_argument,
            "cross-attention has queries of {} channels and attention of {}: expected the same",
            cross.query_width(), block.attention.query_width());
  }
  require_extent(block.feed_forward.width, max_extent, "feed-forward size");
  require(std::isfinite(block.norm.epsilon) && block.norm.epsilon > 0, ErrorCode::invalid_argument,
          "layer_norm_epsilon must be positive, not {}", block.norm.epsilon);
  require(block.norm.kind == NormKind::layer || !block.norm.bias, ErrorCode::invalid_argument,
          "an RMS norm has no bias");
  require(!has_output_norms() || !block.cross_attention, ErrorCode::invalid_argument,
          "norms of what branches give are those of models of one stack");
  require(block.residual == ResidualKind::sequential ||
              (block.norm.placement == NormPlacement::pre && !block.cross_attention),
          ErrorCode::invalid_argument,
          "a parallel residual has its norms before its branches and no cross-attention");
  require(std::isfinite(embedding_scale) && embedding_scale > 0, ErrorCode::invalid_argument,
          "the scale of the embedding must be positive, not {}", embedding_scale);
  require(std::isfinite(logit_scale) && logit_scale > 0 && (logit_scale == 1.0F || final_norm),
          ErrorCode::invalid_argument,
          "the scale before the unembedding must be positive, and 1 without a final norm, not {}",
          logit_scale);
  require(std::isfinite(logit_cap) && logit_cap >= 0, ErrorCode::invalid_argument,
          "the soft cap of logits must be 0 (none) or positive, not {}", logit_cap);
  require(token_types >= 0 && token_types <= max_extent, ErrorCode::invalid_argument,
          "token types must be between 0 and {}, not {}", max_extent, token_types);
  require(has_unembedding || !prediction_head, ErrorCode::invalid_argument,
          "a stack without an unembedding has no prediction head");
  require(has_unembedding || !unembedding_bias, ErrorCode::invalid_argument,
          "a stack without an unembedding has no bias of it");
  require(role == StackRole::decoder || !block.cross_attention, ErrorCode::invalid_argument,
          "an encoder has no cross-attention");
  require(std::isfinite(initial_deviation) && initial_deviation >= 0, ErrorCode::invalid_argument,
          "initializer_range must be 0 or more, not {}", initial_deviation);
  require_rate(embedding_dropout, "embd_pdrop");
  require_rate(attention_dropout, "attn_pdrop");
  require_rate(residual_dropout, "resid_pdrop");
  require(end_of_text >= -1 && end_of_text < vocabulary_size, ErrorCode::invalid_argument,
          "eos_token_id is {}, outside the vocabulary of {}", end_of_text, vocabulary_size);
}

std::vector<std::int32_t> Architecture::end_tokens() const {
  std::vector<std::int32_t> tokens;
  const std::int64_t end = decoder().end_of_text;
  if (end >= 0) tokens.push_back(static_cast<std::int32_t>(end));
  for (const std::int64_t other : other_ends) tokens.push_back(static_cast<std::int32_t>(other));
  return tokens;
}

bool Architecture::ends_text(std::int64_t token) const {
  return token >= 0 && (token == decoder().end_of_text ||
                        std::ranges::find(other_ends, token) != other_ends.end());
}

void Architecture::validate() const {
  require(stacks.size() == 1 || stacks.size() == 2, ErrorCode::invalid_argument,
          "a model has one stack or two, not {}", stacks.size());
  for (const StackSpecification& stack : stacks) stack.validate();
  const bool attends_across = stacks.back().block.cross_attention.has_value();
  require(attends_across == (stacks.size() == 2), ErrorCode::invalid_argument,
          "the last of {} stacks {} cross-attention: an encoder and a decoder need it, one stack "
          "has nothing to attend to",
          stacks.size(), attends_across ? "has" : "lacks");
  if (stacks.size() == 1) return;
  require(stacks.front().role == StackRole::encoder && stacks.back().role == StackRole::decoder,
          ErrorCode::invalid_argument, "two stacks are an encoder, then a decoder");
  require(!shared_embedding || stacks.front().vocabulary_size == stacks.back().vocabulary_size,
          ErrorCode::invalid_argument,
          "an embedding of {} tokens cannot be shared with a decoder of {}",
          stacks.front().vocabulary_size, stacks.back().vocabulary_size);
  require(stacks.front().channels == stacks.back().channels, ErrorCode::invalid_argument,
          "the encoder has {} channels and the decoder {}: expected the same",
          stacks.front().channels, stacks.back().channels);
}

StackSpecification make_gpt_config(std::int64_t layers, std::int64_t heads, std::int64_t channels,
                                   std::int64_t context, std::int64_t vocabulary_size) {
  require(heads >= 1 && channels % heads == 0, ErrorCode::invalid_argument,
          "{} channels cannot be divided into {} heads of equal size", channels, heads);
  StackSpecification stack;
  stack.layers = layers;
  stack.channels = channels;
  stack.context = context;
  stack.vocabulary_size = vocabulary_size;
  stack.block.attention.query_heads = stack.block.attention.key_value_heads = heads;
  stack.block.attention.head_size = channels / heads;
  stack.block.feed_forward.width = 4 * channels;
  return stack;
}

void set_biases(StackSpecification& stack, Biases biases) {
  const bool bias = biases == Biases::all;
  stack.block.norm.bias = bias && stack.block.norm.kind == NormKind::layer;
  stack.block.attention.query_bias = stack.block.attention.output_bias = bias;
  stack.block.feed_forward.bias = bias;
}

bool has_biases(const StackSpecification& stack) {
  const BlockSpecification& block = stack.block;
  return block.norm.bias || block.attention.query_bias || block.attention.output_bias ||
         block.feed_forward.bias;
}

const char* position_kind_name(PositionKind kind) {
  switch (kind) {
    case PositionKind::none: return "none";
    case PositionKind::learned: return "learned";
    case PositionKind::sinusoidal: return "sinusoidal";
    case PositionKind::rotary: return "rotary";
    case PositionKind::relative: return "relative";
  }
  return "unknown";
}

const char* norm_kind_name(NormKind kind) { return kind == NormKind::rms ? "rms" : "layer"; }

const char* norm_placement_name(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::pre: return "pre";
    case NormPlacement::post: return "post";
    case NormPlacement::output: return "output";
    case NormPlacement::around: return "around";
  }
  return "unknown";
}

const char* activation_name(Activation activation) {
  return kernels::description_of(activation).names.front().data();
}

std::int64_t RelativePositions::bucket(std::int64_t distance) const {
  const std::int64_t own = both_directions ? buckets / 2 : buckets;
  const std::int64_t first = both_directions && distance > 0 ? own : 0;
  const std::int64_t away =
      both_directions ? std::abs(distance) : std::max<std::int64_t>(-distance, 0);
  const std::int64_t exact = own / 2;
  if (away < exact) return first + away;
  // In f32, as published: a boundary falls on the same side.
  const float position =
      std::log(static_cast<float>(away) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact))) *
      static_cast<float>(own - exact);
  return first + std::min(exact + static_cast<std::int64_t>(position), own - 1);
}

void require_runnable(const StackSpecification& stack) {
  const auto refuse = [](bool refused, const char* what) {
    require(!refused, ErrorCode::unsupported, "heed describes and counts {}, but cannot run them",
            what);
  };
  refuse(stack.is_post_norm() && stack.is_parallel(),
         "parallel blocks with norms after their branches");
  refuse(stack.is_parallel() && stack.block.cross_attention.has_value(),
         "parallel blocks with cross-attention");
}

void require_runnable(const Architecture& architecture) {
  for (const StackSpecification& stack : architecture.stacks) require_runnable(stack);
}

}  // namespace heed
