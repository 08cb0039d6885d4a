#include "model/parameter_count.h"

namespace heed {

ParameterCount count_parameters(const GptConfig& config) {
  config.validate();
  const std::int64_t c = config.channels;
  const std::int64_t a = config.attention_width();
  const std::int64_t f = config.feed_forward;

  ParameterCount count;
  count.embedding = config.vocabulary_size * c;
  count.position = config.context * c;

  ParameterCount::Head& head = count.per_head;
  head.query = head.key = head.value_down = head.value_up = c * config.head_size;
  head.total = head.query + head.key + head.value_down + head.value_up;

  count.attention_block = config.heads * head.total;
  count.attention_total = config.layers * count.attention_block;
  count.feed_forward_block = 2 * c * f;
  count.feed_forward_total = config.layers * count.feed_forward_block;

  const std::int64_t norm = config.has_bias ? 2 * c : c;
  count.norms = (2 * config.layers + 1) * norm;
  count.biases = config.has_bias ? config.layers * (3 * a + c + f + c) : 0;
  if (config.unembedding_bias) count.biases += config.vocabulary_size;
  count.unembedding = config.tied_unembedding ? 0 : count.embedding;
  count.total = count.embedding + count.position + count.attention_total +
                count.feed_forward_total + count.biases + count.norms + count.unembedding;
  return count;
}

ModelCost model_cost(const GptConfig& config) {
  constexpr std::int64_t f32 = 4;
  const ParameterCount count = count_parameters(config);
  const auto a = static_cast<double>(config.attention_width());

  ModelCost cost;
  cost.key_value_bytes_per_token = 2 * config.layers * config.attention_width() * f32;
  cost.run_bytes = count.total * f32 + config.context * cost.key_value_bytes_per_token;
  cost.train_bytes = 4 * count.total * f32;
  // The unembedding is multiplied even where it is tied to the embedding.
  const double multiplied = static_cast<double>(count.attention_total + count.feed_forward_total +
                                                config.vocabulary_size * config.channels);
  cost.flops_per_token = 2.0 * multiplied + 2.0 * static_cast<double>(config.layers) * a *
                                                static_cast<double>(config.context);
  cost.train_flops_per_token = 3.0 * cost.flops_per_token;
  return cost;
}

}  // namespace heed
