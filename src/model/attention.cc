#include "model/attention.h"

#include <cmath>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "model/cache.h"
#include "model/edited_points.h"
#include "model/head_points.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

template <class T>
struct Heads {
  View<T> query;  // (B, T, H, D)
  View<T> key;    // (B, T, H, D)
  View<T> value;  // (B, T, H, D)

  operator Heads<const T>() const requires(!std::is_const_v<T>) { return {query, key, value}; }
};

// One row of query_key_value holds query | key | value, each of A = H·D channels.
template <class T>
Heads<T> split_heads(const GptConfig& config, const Pass& pass, View<T> query_key_value) {
  const std::int64_t a = config.attention_width();
  const View<T> rows = query_key_value.reshape({pass.batch, pass.positions, 3 * a});
  const auto third = [&](std::int64_t index) {
    return rows.slice(2, index * a, (index + 1) * a).split_last(config.heads, config.head_size);
  };
  return {third(0), third(1), third(2)};
}

template <class T>
View<T> concatenated_heads(const GptConfig& config, const Pass& pass, View<T> mixed_values) {
  return mixed_values.reshape({pass.batch, pass.positions, config.heads, config.head_size});
}

// From this many positions on, rounding the operands of attention to bf16 costs less than it saves.
constexpr std::int64_t long_prompt = 64;

// The precision of attention's products: that of the QKV projection, or bf16 for long prompts where
// the weights are prepared in bf16.
kernels::Precision attention_precision(const LinearWeights& query_key_value, const Pass& pass) {
  const kernels::PreparedWeight* const prepared = query_key_value.prepared;
  const bool has_bf16_weights =
      prepared != nullptr && prepared->format() == kernels::WeightFormat::bf16;
  return has_bf16_weights && pass.positions >= long_prompt ? kernels::Precision::bf16
                                                           : query_key_value.precision;
}

struct AttentionLayer {
  const GptConfig& config;
  std::int64_t layer;
  kernels::Precision precision;
};

// Queries of this pass against its own keys and values or, with a cache, against everything in it
// (attend_to_quantised_cache sets the keys and values of a quantised cache).
kernels::AttentionInput<float> attention_input(const AttentionLayer& attention, const Pass& pass,
                                               const Heads<const float>& heads) {
  const auto& [config, layer, precision] = attention;
  kernels::AttentionInput<float> input{
      .query = heads.query,
      .key = heads.key,
      .value = heads.value,
      .mask = kernels::Mask::causal,
      .scale = 1.0F / std::sqrt(static_cast<float>(config.head_size)),
      .dropout = pass.dropout.at(DropoutPoint::pattern, layer, config.attention_dropout),
      .precision = precision};
  if (pass.cache != nullptr) {
    pass.cache->store(layer, heads.key, heads.value);
  }
  if (pass.cache != nullptr && pass.cache->type() == CacheType::f32) {
    input.key = pass.cache->keys(layer, pass.first_position + pass.positions);
    input.value = pass.cache->values(layer, pass.first_position + pass.positions);
  }
  return input;
}

bool has_quantised_cache(const Pass& pass) {
  return pass.cache != nullptr && pass.cache->type() != CacheType::f32;
}

// `input` with the keys and values of the cache instead of its own.
void attend_to_quantised_cache(const Pass& pass, std::int64_t layer,
                               const kernels::AttentionInput<float>& input, View<float> mixed,
                               View<float> log_sum_exp) {
  const std::int64_t positions = pass.first_position + pass.positions;
  const auto key = pass.cache->quantised_keys(layer, positions);
  const auto value = pass.cache->quantised_values(layer, positions);
  kernels::attention_forward(
      {.query = input.query, .key = key, .value = value, .mask = input.mask, .scale = input.scale},
      mixed, log_sum_exp);
  if (pass.probe == nullptr && pass.editor == nullptr) return;
  const Shape& query = input.query.shape();
  const Shape shape{query[0], positions, query[2], query[3]};
  Tensor<float> keys(shape), values(shape);
  kernels::dequantise_rows(key, keys);
  kernels::dequantise_rows(value, values);
  kernels::AttentionInput<float> restored = input;
  restored.key = keys;
  restored.value = values;
  restored.precision = kernels::Precision::f32;  // as attention read them
  edit_attention(pass, layer, restored, log_sum_exp, mixed);
  observe_attention(pass, layer, restored, log_sum_exp);
}

void attend(const Pass& pass, std::int64_t layer, const kernels::AttentionInput<float>& input,
            View<float> mixed, View<float> log_sum_exp) {
  if (has_quantised_cache(pass)) {
    return attend_to_quantised_cache(pass, layer, input, mixed, log_sum_exp);
  }
  kernels::attention_forward(input, mixed, log_sum_exp);
  edit_attention(pass, layer, input, log_sum_exp, mixed);
  observe_attention(pass, layer, input, log_sum_exp);
}

// Sequences of different lengths, each with its own cache; one thread per sequence.
void attend_separately(const AttentionLayer& attention, const Pass& pass,
                       const Heads<const float>& heads, View<float> mixed,
                       View<float> log_sum_exp) {
  parallel_items(pass.batch, [&](std::int64_t b) {
    const auto of_sequence = [b](const auto& view) { return view.slice(0, b, b + 1); };
    const Pass own{.batch = 1,
                   .positions = pass.positions,
                   .first_position = pass.first_positions[static_cast<std::size_t>(b)],
                   .cache = pass.caches[static_cast<std::size_t>(b)],
                   .editor = pass.editor,
                   .first_sequence = b};
    const auto input = attention_input(
        attention, own,
        {of_sequence(heads.query), of_sequence(heads.key), of_sequence(heads.value)});
    attend(own, attention.layer, input, of_sequence(mixed), of_sequence(log_sum_exp));
  });
}

}  // namespace

void self_attention_forward(const GptConfig& config, const BlockParameters& parameters,
                            std::int64_t layer, const Pass& pass, const BlockActivations& block) {
  // 1. QKV projection: (N, C) -> (N, 3A)
  const AttentionActivations& saved = block.attention;
  kernels::linear_forward(block.norm_1, parameters.query_key_value, saved.query_key_value);
  edit_head_inputs(config, parameters, layer, pass, block.residual_pre, saved.query_key_value);
  const auto heads = split_heads(config, pass, saved.query_key_value);
  pass.visit(PointKind::query, layer, heads.query);
  pass.visit(PointKind::key, layer, heads.key);
  pass.visit(PointKind::value, layer, heads.value);

  // 2. softmax(query·keyᵀ·scale)·value, head by head: (B, T, H, D)
  const auto mixed = concatenated_heads(config, pass, saved.mixed_values);
  const AttentionLayer attention{config, layer,
                                 attention_precision(parameters.query_key_value, pass)};
  if (pass.caches.empty()) {
    attend(pass, layer, attention_input(attention, pass, heads), mixed, saved.log_sum_exp);
  } else {
    attend_separately(attention, pass, heads, mixed, saved.log_sum_exp);
  }
  pass.visit(PointKind::mixed_values, layer, mixed);

  // 3. heads concatenated and projected back to the stream: (N, A) -> (N, C)
  kernels::linear_forward(saved.mixed_values, parameters.projection, block.branch_out);
  edit_head_results(config, parameters.projection, layer, pass, saved.mixed_values,
                    block.branch_out);
  observe_head_results(config, parameters.projection, layer, pass, saved.mixed_values);
}

kernels::AttentionInput<float> saved_attention_input(const GptConfig& config,
                                                     const BlockParameters& parameters,
                                                     std::int64_t layer, const Pass& pass,
                                                     const AttentionActivations& saved) {
  const AttentionLayer attention{config, layer,
                                 attention_precision(parameters.query_key_value, pass)};
  return attention_input(attention, pass,
                         split_heads(config, pass, View<const float>(saved.query_key_value)));
}

void self_attention_backward(const GptConfig& config, const BlockParameters& parameters,
                             const BlockGradients& gradients, std::int64_t layer, const Pass& pass,
                             const AttentionActivations& saved,
                             const GptActivationGradients& buffers,
                             const SelfAttentionBackward& operands) {
  // 3. out = mixed_values · projectionᵀ + bias
  observe_head_result_gradients(config, layer, pass, operands.d_out);
  kernels::linear_backward_input(kernels::MultipliedWeight(parameters.projection).view(),
                                 operands.d_out, buffers.mixed_values,
                                 parameters.projection.precision);
  kernels::linear_backward_parameters(saved.mixed_values, operands.d_out, gradients.projection,
                                      parameters.projection.precision);

  // 2. mixed_values = softmax(query·keyᵀ·scale)·value, the pattern recomputed from log_sum_exp
  const auto d_heads = split_heads(config, pass, buffers.query_key_value);
  const auto input = saved_attention_input(config, parameters, layer, pass, saved);
  const View<const float> d_mixed = concatenated_heads(config, pass, buffers.mixed_values);
  pass.observe_gradient(PointKind::mixed_values, layer, d_mixed);
  observe_attention_gradients(pass, layer, input, saved.log_sum_exp, d_mixed);
  kernels::attention_backward(
      input, concatenated_heads(config, pass, View<const float>(saved.mixed_values)),
      saved.log_sum_exp, d_mixed,
      {.query = d_heads.query, .key = d_heads.key, .value = d_heads.value});
  pass.observe_gradient(PointKind::query, layer, d_heads.query);
  pass.observe_gradient(PointKind::key, layer, d_heads.key);
  pass.observe_gradient(PointKind::value, layer, d_heads.value);

  // 1. query_key_value = x · weightᵀ + bias
  kernels::linear_backward_input(kernels::MultipliedWeight(parameters.query_key_value).view(),
                                 buffers.query_key_value, operands.d_x,
                                 parameters.query_key_value.precision);
  kernels::linear_backward_parameters(operands.x, buffers.query_key_value,
                                      gradients.query_key_value,
                                      parameters.query_key_value.precision);
}

}  // namespace heed
