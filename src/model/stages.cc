#include "model/stages.h"

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "tensor/tensor.h"

namespace heed {

void project(const Pass& pass, View<const float> x, const LinearWeights& weights, View<float> out) {
  kernels::linear_forward(x, weights, out, pass.arithmetic_length());
}

void project_outputs(const Pass& pass, View<const float> x, const LinearWeights& weights,
                     std::int64_t begin, View<float> out) {
  const std::int64_t end = begin + out.extent(1);
  if (weights.prepared != nullptr) {  // packed in panels of outputs: all of them, as in the pass
    Tensor<float> all(Shape{x.extent(0), weights.weight.extent(0)}, x.device());
    project(pass, x, weights, all);
    return kernels::copy(all.view().slice(1, begin, end), out);
  }
  LinearWeights part{.weight = weights.weight.slice(0, begin, end), .precision = weights.precision};
  if (weights.bias.present()) part.bias = weights.bias.slice(0, begin, end);
  project(pass, x, part, out);
}

void project_backward(const LinearWeights& weights, const LinearWeightGradients& gradients,
                      const ProjectBackward& operands) {
  kernels::linear_backward_input(kernels::MultipliedWeight(weights).view(), operands.d_out,
                                 operands.d_x, weights.precision);
  kernels::linear_backward_parameters(operands.x, operands.d_out, gradients, weights.precision);
}

void normalise(const StackSpecification& stack, View<const float> x, const NormWeights& weights,
               const NormSaved& saved, View<float> out) {
  if (stack.block.norm.kind == NormKind::layer) {
    kernels::layer_norm_forward(x, weights, out, saved);
  } else {
    kernels::rms_norm_forward(x, weights, out, saved.reciprocal_deviation);
  }
}

void norm_output(const StackSpecification& stack, const NormWeights& weights, View<float> rows) {
  if (!stack.has_output_norms()) return;
  const Device device = rows.device();
  Tensor<float> given(rows.shape(), device), mean(Shape{rows.extent(0)}, device),
      deviation(mean.shape(), device);
  kernels::copy(rows, given);
  NormSaved saved{.reciprocal_deviation = deviation};
  if (stack.block.norm.kind == NormKind::layer) saved.mean = mean;
  normalise(stack, given, weights, saved, rows);
}

void normalise_backward(const StackSpecification& stack, const FrozenParts& frozen,
                        const NormWeights& weights, const NormSaved& saved,
                        const NormBackwardRows& rows, const NormWeightGradients& gradients) {
  const bool is_centred = stack.block.norm.kind == NormKind::layer;
  if (frozen.scale) {
    kernels::constant_scale_norm_backward(
        {.gain = weights.gain,
         .reciprocal_deviation = saved.reciprocal_deviation,
         .centring = is_centred ? kernels::Centring::mean : kernels::Centring::none},
        rows.d_out, rows.d_x);
  } else if (is_centred) {
    kernels::layer_norm_backward(rows.x, weights, saved, rows.d_out, rows.d_x, gradients);
  } else {
    kernels::rms_norm_backward(rows.x, weights, saved.reciprocal_deviation, rows.d_out, rows.d_x,
                               gradients);
  }
}

namespace {

// Queries, then keys, among the projections and as attention reads them.
struct Positioned {
  std::int64_t first;  // column, of both
  std::int64_t heads;
};

// In place, for the columns d (N, H·D) of heads whose norms divide by constants, reciprocal (N, H).
void constant_scale_backward_of_heads(const NormWeights& norm, View<float> deviation,
                                      View<float> d) {
  const std::int64_t size = norm.gain.extent(0);
  Tensor<float> d_x(Shape{d.extent(0), size}, d.device());
  for (std::int64_t head = 0; head < deviation.extent(1); ++head) {
    const View<float> own = d.slice(1, head * size, (head + 1) * size);
    kernels::fill(d_x, 0.0F);
    kernels::constant_scale_norm_backward(
        {.gain = norm.gain, .reciprocal_deviation = transposed(deviation)[head]}, own, d_x);
    kernels::copy(d_x, own);
  }
}

// (N, heads, D) as a norm takes them together: as they are, or (N, 1, heads·D).
template <class T>
View<T> normalised_heads(const AttentionSpecification& attention, const Positioned& part,
                         const View<T>& heads) {
  const std::int64_t together = attention.heads_of_norm(part.heads);
  const std::int64_t width = together * attention.head_size;
  return {heads.data(),
          {heads.extent(0), part.heads / together, width},
          {heads.stride(0), width, heads.stride(2)}};
}

}  // namespace

void position(const LayerPass& at, const AttentionActivations& saved) {
  const AttentionSpecification& attention = at.attention();
  if (!attention.changes_query_and_key()) return;
  const std::int64_t a = attention.query_width(), size = attention.head_size;
  const std::int64_t both = a + attention.key_value_width();
  const auto change = [&](const Positioned& part, const NormWeights& norm, View<float> deviation) {
    const auto from =
        head_columns(View<const float>(saved.query_key_value), part.first, part.heads, size);
    const auto to = head_columns(saved.positioned, part.first, part.heads, size);
    // 1. the norm of each head, or of all of them
    if (attention.query_key_norm) {
      kernels::rms_norm_forward(normalised_heads(attention, part, from), norm,
                                normalised_heads(attention, part, to), deviation);
    }
    // 2. rotation
    if (at.rotary.present()) kernels::rotary_forward(to, at.rotary.table(at.layer));
  };
  if (!attention.query_key_norm) {
    kernels::copy(saved.query_key_value.slice(1, 0, both), saved.positioned);
  }
  change({0, attention.query_heads}, at.parameters.query_norm, saved.query_deviation);
  change({a, attention.key_value_heads}, at.parameters.key_norm, saved.key_deviation);
}

void position_backward(const LayerPass& at, const AttentionActivations& saved,
                       const BlockGradients& gradients, View<float> d_projected) {
  const AttentionSpecification& attention = at.attention();
  const std::int64_t size = attention.head_size;
  const auto change = [&](const Positioned& part, const NormWeights& norm, View<float> deviation,
                          const NormWeightGradients& norm_gradients) {
    const auto d = head_columns(d_projected, part.first, part.heads, size);
    // 2. rotation
    if (at.rotary.present()) kernels::rotary_backward(d, at.rotary.table(at.layer));
    // 1. the norm of each head, or of all of them
    if (!attention.query_key_norm) return;
    if (at.pass.frozen.scale) {
      return constant_scale_backward_of_heads(
          norm, deviation, d_projected.slice(1, part.first, part.first + part.heads * size));
    }
    const auto x =
        head_columns(View<const float>(saved.query_key_value), part.first, part.heads, size);
    const auto d_heads = normalised_heads(attention, part, d);
    kernels::rms_norm_backward(normalised_heads(attention, part, x), norm, deviation, d_heads,
                               d_heads, norm_gradients);
  };
  change({0, attention.query_heads}, at.parameters.query_norm, saved.query_deviation,
         gradients.query_norm);
  change({attention.query_width(), attention.key_value_heads}, at.parameters.key_norm,
         saved.key_deviation, gradients.key_norm);
}

Heads<const float> attention_heads(const AttentionSpecification& attention, std::int64_t batch,
                                   const AttentionActivations& saved) {
  Heads<const float> heads =
      split_heads(attention, batch, View<const float>(saved.query_key_value));
  if (!attention.changes_query_and_key()) return heads;
  const auto part = [&](std::int64_t first, std::int64_t count) {
    return heads_of_sequences(saved.positioned, first, count, attention.head_size, batch);
  };
  heads.query = part(0, attention.query_heads);
  heads.key = part(attention.query_width(), attention.key_value_heads);
  return heads;
}

void feed_forward(const LayerPass& at, View<const float> x, const FeedForwardActivations& saved,
                  View<float> out) {
  const FeedForwardSpecification& layer = at.stack.block.feed_forward;
  // 1. up projection, and the gate's: (R, C) -> (R, F)
  const View<float> up = layer.gated ? saved.linear : saved.pre;
  if (layer.gated) project(at.pass, x, at.parameters.gate, saved.pre);
  project(at.pass, x, at.parameters.up, up);
  at.pass.visit_rows(PointKind::neurons_pre, at.layer, saved.pre);
  // 2. activation
  if (layer.gated) {
    at.pass.visit_rows(PointKind::neurons_linear, at.layer, saved.linear);
    kernels::gated_activation_forward(saved.pre, saved.linear, layer.activation, saved.post);
  } else {
    kernels::activation_forward(saved.pre, layer.activation, saved.post);
  }
  at.pass.visit_rows(PointKind::neurons_post, at.layer, saved.post);
  // 3. down projection: (R, F) -> (R, C)
  project(at.pass, saved.post, at.parameters.down, out);
}

void feed_forward_backward(const LayerPass& at, const FeedForwardActivations& saved,
                           const BlockGradients& gradients, const FeedForwardBackward& operands) {
  const FeedForwardSpecification& layer = at.stack.block.feed_forward;
  const View<float> d_neurons = operands.d_neurons;
  // 3. out = post · downᵀ + bias
  project_backward(at.parameters.down, gradients.down,
                   {.x = saved.post, .d_out = operands.d_out, .d_x = d_neurons});
  at.pass.visit_gradient_rows(PointKind::neurons_post, at.layer, d_neurons);
  if (!layer.gated) {
    // 2. post = activation(pre), in place
    kernels::activation_backward(saved.pre, layer.activation, d_neurons, d_neurons);
    at.pass.visit_gradient_rows(PointKind::neurons_pre, at.layer, d_neurons);
    // 1. pre = x · upᵀ + bias
    return project_backward(at.parameters.up, gradients.up,
                            {.x = operands.x, .d_out = d_neurons, .d_x = operands.d_x});
  }
  // 2. post = activation(pre) · linear
  kernels::gated_activation_backward(saved.pre, saved.linear, layer.activation, d_neurons,
                                     d_neurons, operands.d_linear);
  at.pass.visit_gradient_rows(PointKind::neurons_pre, at.layer, d_neurons);
  at.pass.visit_gradient_rows(PointKind::neurons_linear, at.layer, operands.d_linear);
  // 1. pre = x · gateᵀ + bias, linear = x · upᵀ + bias
  project_backward(at.parameters.gate, gradients.gate,
                   {.x = operands.x, .d_out = d_neurons, .d_x = operands.d_x});
  Tensor<float> d_x(operands.d_x.shape(), operands.d_x.device());
  project_backward(at.parameters.up, gradients.up,
                   {.x = operands.x, .d_out = operands.d_linear, .d_x = d_x});
  kernels::add(operands.d_x, d_x, operands.d_x);
}

void drop(const LayerPass& at, DropoutPoint point, View<float> branch) {
  at.pass.drop(point, at.layer, at.stack.residual_dropout, branch, branch);
}

void norm_forward(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                  const NormPoints& points, View<const float> x, const NormOutput& norm) {
  Tensor<float> edited;
  const View<const float> read = norm_input(pass, layer, points, x, edited);
  normalise(stack, read, norm.parameters, norm.saved, norm.out);
  if (pass.editor != nullptr) edit_norm(pass, layer, points, read, norm);
  if (pass.probe != nullptr) observe_norm(pass, layer, points, x, norm.saved);
}

void norm_backward(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                   const NormPoints& points, const NormOperands& norm,
                   const NormBackward& backward) {
  Tensor<float> edited;
  NormOperands read = norm;
  read.x = norm_input(pass, layer, points, norm.x, edited);
  observe_norm_gradients(stack, pass, layer, points, read);
  const bool is_edited = points.input && pass.edits_gradient(*points.input, layer);
  Tensor<float> d_input;  // of the norm's input alone
  if (is_edited) d_input = Tensor<float>(norm.x.shape(), norm.x.device());
  normalise_backward(
      stack, pass.frozen, norm.parameters, norm.saved,
      {.x = read.x, .d_out = norm.d_out, .d_x = is_edited ? d_input.view() : backward.d_x},
      backward.gradients);
  if (!is_edited) return;
  pass.visit_gradient_rows(*points.input, layer, d_input);
  kernels::add(backward.d_x, d_input, backward.d_x);
}

}  // namespace heed
