#include "model/parameter_count.h"

#include <algorithm>

#include "model/parameters.h"

namespace heed {
namespace {

// `is_last`: of the last stack, whose blocks count as the block.
void add_parameter(const Parameter& parameter, bool is_last, ParameterCount& count) {
  const std::int64_t size = parameter.shape.size();
  const auto& [role, part, layer, site] = parameter.id;
  if (is_norm(role)) {
    count.norms += size;
  } else if (part == Part::bias) {
    count.biases += size;
  } else if (role == Role::token_embedding) {
    count.embedding += size;
  } else if (role == Role::position_embedding || role == Role::token_type_embedding ||
             role == Role::position_bias) {
    count.position += size;
  } else if (role == Role::unembedding || role == Role::prediction) {
    count.unembedding += size;
  } else if (is_attention(role)) {
    count.attention_total += size;
    if (layer == 0 && is_last) count.attention_block += size;
  } else {
    count.feed_forward_total += size;
    if (layer == 0 && is_last) count.feed_forward_block += size;
  }
  count.total += size;
}

ParameterCount::Head count_head(const StackSpecification& stack) {
  const std::int64_t matrix = stack.channels * stack.head_size();
  return {.query = matrix,
          .key = matrix,
          .value_down = matrix,
          .value_up = matrix,
          .total = 4 * matrix};
}

}  // namespace

ParameterCount count_parameters(const StackSpecification& config) {
  ParameterCount count;
  for (const Parameter& parameter : parameters_of(config)) add_parameter(parameter, true, count);
  count.per_head = count_head(config);
  return count;
}

ParameterCount count_parameters(const Architecture& architecture) {
  ParameterCount count;
  for (const Parameter& parameter : parameters_of(architecture)) {
    add_parameter(parameter, parameter.id.site == architecture.site(architecture.stacks.size() - 1),
                  count);
  }
  count.per_head = count_head(architecture.stacks.back());
  return count;
}

std::vector<StackCount> count_stacks(const Architecture& architecture) {
  std::vector<StackCount> counts;
  for (std::size_t index = 0; index < architecture.stacks.size(); ++index) {
    StackCount& count = counts.emplace_back();
    count.site = architecture.site(index);
    for (const Parameter& parameter : parameters_of(architecture)) {
      const ParameterId& id = parameter.id;
      if (id.site != count.site || id.layer < 0 || id.part == Part::bias || is_norm(id.role)) {
        continue;
      }
      std::int64_t& part = is_cross_attention(id.role) ? count.cross_attention
                           : is_attention(id.role)     ? count.attention
                                                       : count.feed_forward;
      part += parameter.shape.size();
    }
  }
  return counts;
}

double mean_attended(const AttentionSpecification& attention, std::int64_t layer,
                     std::int64_t positions) {
  const auto t = static_cast<double>(positions);
  if (attention.mask.kind == MaskKind::full) return t;
  const std::int64_t window = attention.window(layer);
  if (window == 0 || window >= positions) return t / 2;
  const auto w = static_cast<double>(window);
  return w - w * w / (2 * t);
}

double attention_flops_per_token(const StackSpecification& config, std::int64_t positions) {
  const AttentionSpecification& attention = config.block.attention;
  double sum = 0;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    sum += 4 * static_cast<double>(attention.query_width()) *
           mean_attended(attention, layer, positions);
  }
  return sum;
}

ModelCost model_cost(const StackSpecification& config) {
  constexpr std::int64_t f32 = 4;
  const ParameterCount count = count_parameters(config);
  ModelCost cost;
  cost.key_value_bytes_per_token =
      2 * config.layers * config.block.attention.key_value_width() * f32;
  cost.run_bytes = count.total * f32 + config.context * cost.key_value_bytes_per_token;
  cost.train_bytes = 4 * count.total * f32;
  // The unembedding is multiplied even where it is tied to the embedding.
  const std::int64_t unembedding =
      config.has_unembedding ? config.vocabulary_size * config.channels : 0;
  const auto multiplied =
      static_cast<double>(count.attention_total + count.feed_forward_total + unembedding);
  cost.flops_per_token = 2.0 * multiplied + attention_flops_per_token(config, config.context);
  cost.train_flops_per_token = 3.0 * cost.flops_per_token;
  return cost;
}

}  // namespace heed
