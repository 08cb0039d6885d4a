#include "model/head_points.h"

#include <algorithm>
#include <array>

#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "model/matrix_copy.h"
#include "model/norm.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

// In the order of the thirds of query_key_value.
constexpr std::array projected_inputs{PointKind::query_input, PointKind::key_input,
                                      PointKind::value_input};

// rows (N, C) of every head alike, (B, T, H, C), without a copy.
View<const float> for_each_head(const GptConfig& config, const Pass& pass, View<const float> rows) {
  const std::int64_t c = config.channels;
  return {
      rows.data(), {pass.batch, pass.positions, config.heads, c}, {pass.positions * c, c, 0, 1}};
}

// (N, C) of one head of (B, T, H, C).
View<float> rows_of_head(Tensor<float>& heads, std::int64_t head) {
  const Shape& shape = heads.shape();
  return heads.view()
      .reshape({shape[0] * shape[1], shape[2] * shape[3]})
      .slice(1, head * shape[3], (head + 1) * shape[3]);
}

// The stream (N, C) as the heads of a layer read it at `point`.
class HeadInput {
 public:
  HeadInput(const GptConfig& config, std::int64_t layer, const Pass& pass, PointKind kind,
            View<const float> stream)
      : layer_(layer), pass_(pass), kind_(kind), stream_(stream) {
    if (!edits(PointKind::attention_in) && !edits(kind)) return;
    edited_ = Tensor<float>(Shape{pass.batch, pass.positions, config.heads, config.channels});
    for (std::int64_t head = 0; head < config.heads; ++head) {
      copy_matrix(stream, rows_of_head(edited_, head));
    }
    pass.edit({PointKind::attention_in, layer}, edited_);
    if (kind != PointKind::attention_in) pass.edit({kind, layer}, edited_);
  }

  bool is_edited(std::int64_t head) const {
    return pass_.edits_head({PointKind::attention_in, layer_}, head) ||
           pass_.edits_head({kind_, layer_}, head);
  }
  bool is_edited() const { return edited_.present(); }
  const Tensor<float>& edited() const { return edited_; }

  // (N, C), dense
  Tensor<float> rows(std::int64_t head) {
    Tensor<float> rows(stream_.shape());
    copy_matrix(is_edited() ? View<const float>(rows_of_head(edited_, head)) : stream_, rows);
    return rows;
  }

 private:
  bool edits(PointKind kind) const { return pass_.edits({kind, layer_}); }

  std::int64_t layer_;
  const Pass& pass_;
  PointKind kind_;
  View<const float> stream_;
  Tensor<float> edited_;  // (B, T, H, C); absent: every head reads the stream
};

// The first norm of a block on one head's own input.
struct HeadNorm {
  Tensor<float> x;    // (N, C)
  Tensor<float> out;  // (N, C)
  Tensor<float> mean;
  Tensor<float> reciprocal_deviation;

  HeadNorm(const Pass& pass, std::int64_t layer, const NormWeights& parameters,
           Tensor<float> head_input)
      : x(std::move(head_input)),
        out(x.shape()),
        mean(Shape{x.shape()[0]}),
        reciprocal_deviation(Shape{x.shape()[0]}) {
    Pass unobserved = pass;
    unobserved.probe = nullptr;
    norm_forward(unobserved, layer, norm_1_points, x, {parameters, saved(), out});
  }
  NormSaved saved() { return {mean, reciprocal_deviation}; }
};

// Rows of query_key_value's weight that belong to a head: (D, C) from `begin`.
LinearWeights rows_from(const LinearWeights& linear, View<const float> weight, std::int64_t begin,
                        std::int64_t count) {
  LinearWeights part{.weight = weight.slice(0, begin, begin + count),
                     .precision = linear.precision};
  if (linear.bias.present()) part.bias = linear.bias.slice(0, begin, begin + count);
  return part;
}

// The gradient (B, T, H, C) of one of the three inputs.
Tensor<float> input_gradient(const GptConfig& config, const BlockParameters& parameters,
                             std::int64_t layer, const Pass& pass, std::size_t third,
                             const BlockActivations& saved, View<const float> d_query_key_value) {
  const std::int64_t size = config.head_size;
  const LinearWeights& linear = parameters.query_key_value;
  const kernels::MultipliedWeight weight(linear);
  HeadInput input(config, layer, pass, projected_inputs[third], saved.residual_pre);
  Tensor<float> gradient(Shape{pass.batch, pass.positions, config.heads, config.channels});
  Tensor<float> d_head(Shape{pass.rows(), size}), d_norm(saved.residual_pre.shape());
  Tensor<float> d_x(saved.residual_pre.shape());
  for (std::int64_t head = 0; head < config.heads; ++head) {
    const std::int64_t begin =
        static_cast<std::int64_t>(third) * config.attention_width() + head * size;
    copy_matrix(d_query_key_value.slice(1, begin, begin + size), d_head);
    kernels::linear_backward_input(weight.view().slice(0, begin, begin + size), d_head, d_norm,
                                   linear.precision);
    d_x.fill(0.0F);  // a norm's backward accumulates
    if (input.is_edited(head)) {
      HeadNorm norm(pass, layer, parameters.norm_1, input.rows(head));
      kernels::layer_norm_backward(norm.x, parameters.norm_1, norm.saved(), d_norm, d_x, {});
    } else {
      kernels::layer_norm_backward(saved.residual_pre, parameters.norm_1, saved.norm_1_saved,
                                   d_norm, d_x, {});
    }
    copy_matrix(d_x, rows_of_head(gradient, head));
  }
  return gradient;
}

// (B, T, H, C), as the pass uses them.
Tensor<float> head_results(const GptConfig& config, const LinearWeights& projection,
                           std::int64_t layer, const Pass& pass, View<const float> mixed) {
  const std::int64_t size = config.head_size;
  const kernels::MultipliedWeight weight(projection);
  Tensor<float> results(Shape{pass.batch, pass.positions, config.heads, config.channels});
  Tensor<float> own(Shape{pass.rows(), size}), part(Shape{config.channels, size});
  Tensor<float> added(Shape{pass.rows(), config.channels});
  for (std::int64_t head = 0; head < config.heads; ++head) {
    copy_matrix(mixed.slice(1, head * size, (head + 1) * size), own);
    copy_matrix(weight.view().slice(1, head * size, (head + 1) * size), part);
    kernels::linear_forward(own, {.weight = part, .precision = projection.precision}, added);
    copy_matrix(added, rows_of_head(results, head));
  }
  pass.edit({PointKind::head_results, layer}, results);
  return results;
}

}  // namespace

void observe_head_inputs(const GptConfig& config, std::int64_t layer, const Pass& pass,
                         View<const float> stream) {
  for (const PointKind kind : {PointKind::attention_in, PointKind::query_input,
                               PointKind::key_input, PointKind::value_input}) {
    if (!pass.wants(kind, layer)) continue;
    const HeadInput input(config, layer, pass, kind, stream);
    pass.observe(kind, layer,
                 input.is_edited() ? input.edited().view() : for_each_head(config, pass, stream));
  }
}

void edit_head_inputs(const GptConfig& config, const BlockParameters& parameters,
                      std::int64_t layer, const Pass& pass, View<const float> stream,
                      View<float> query_key_value) {
  if (pass.editor == nullptr) return;
  const std::int64_t size = config.head_size;
  for (std::size_t third = 0; third < projected_inputs.size(); ++third) {
    HeadInput input(config, layer, pass, projected_inputs[third], stream);
    if (!input.is_edited()) continue;
    const kernels::MultipliedWeight weight(parameters.query_key_value);
    Tensor<float> projected(Shape{pass.rows(), size});
    for (std::int64_t head = 0; head < config.heads; ++head) {
      if (!input.is_edited(head)) continue;
      const std::int64_t begin =
          static_cast<std::int64_t>(third) * config.attention_width() + head * size;
      const HeadNorm norm(pass, layer, parameters.norm_1, input.rows(head));
      kernels::linear_forward(
          norm.out, rows_from(parameters.query_key_value, weight.view(), begin, size), projected);
      copy_matrix(projected, query_key_value.slice(1, begin, begin + size));
    }
  }
}

void observe_head_input_gradients(const GptConfig& config, const BlockParameters& parameters,
                                  std::int64_t layer, const Pass& pass,
                                  const BlockActivations& saved,
                                  View<const float> d_query_key_value) {
  const bool wants_sum = pass.wants_gradient(PointKind::attention_in, layer);
  Tensor<float> sum;
  for (std::size_t third = 0; third < projected_inputs.size(); ++third) {
    if (!wants_sum && !pass.wants_gradient(projected_inputs[third], layer)) continue;
    Tensor<float> gradient =
        input_gradient(config, parameters, layer, pass, third, saved, d_query_key_value);
    pass.observe_gradient(projected_inputs[third], layer, gradient);
    if (!wants_sum) continue;
    if (sum.present()) kernels::add(sum, gradient, gradient);
    sum = std::move(gradient);
  }
  if (wants_sum) pass.observe_gradient(PointKind::attention_in, layer, sum);
}

void observe_head_results(const GptConfig& config, const LinearWeights& projection,
                          std::int64_t layer, const Pass& pass, View<const float> mixed) {
  if (!pass.wants(PointKind::head_results, layer)) return;
  pass.observe(PointKind::head_results, layer,
               head_results(config, projection, layer, pass, mixed));
}

void edit_head_results(const GptConfig& config, const LinearWeights& projection, std::int64_t layer,
                       const Pass& pass, View<const float> mixed, View<float> out) {
  if (!pass.edits({PointKind::head_results, layer})) return;
  Tensor<float> results = head_results(config, projection, layer, pass, mixed);
  for (std::int64_t head = 0; head < config.heads; ++head) {
    const View<const float> added = rows_of_head(results, head);
    for (std::int64_t row = 0; row < pass.rows(); ++row) {
      for (std::int64_t c = 0; c < config.channels; ++c) {
        const float bias = projection.bias.present() ? projection.bias(c) : 0.0F;
        out(row, c) = (head == 0 ? bias : out(row, c)) + added(row, c);
      }
    }
  }
}

void observe_head_result_gradients(const GptConfig& config, std::int64_t layer, const Pass& pass,
                                   View<const float> d_out) {
  pass.observe_gradient(PointKind::head_results, layer, for_each_head(config, pass, d_out));
}

}  // namespace heed
