#include "model/derived_points.h"

#include "kernels/dropout_hash.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/edited_points.h"
#include "model/stages.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

// Calls compute(b, head, out (T, S)) for every head of every sequence: (B, H, T, S).
template <class Compute>
Tensor<float> head_planes(const kernels::AttentionInput<float>& input, Compute&& compute) {
  const std::int64_t batch = input.query.extent(0);
  const std::int64_t heads = input.query.extent(2);
  const std::int64_t queries = input.query.extent(1);
  const std::int64_t keys = input.key.extent(1);
  Tensor<float> planes(Shape{batch, heads, queries, keys});
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      compute(b, h, planes.view()[b][h]);
    }
  }
  return planes;
}

// ∂loss/∂pattern[t, s] = d_mixed[t]·value[s], times the dropout factor.
void pattern_gradient(const kernels::AttentionInput<float>& input, View<const float> d_mixed,
                      const kernels::AttentionTile& tile, View<float> out) {
  kernels::attention_scores_tile(
      {.query = d_mixed, .key = input.value, .value = input.value, .mask = kernels::Mask::full},
      tile, out);
  if (input.dropout.rate <= 0) return;
  const std::int64_t plane = tile.batch * input.query.extent(2) + tile.head;
  kernels::dropout(out, kernels::from_row(input.dropout, plane * input.query.extent(1)), out);
}

}  // namespace

void observe_attention(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                       const kernels::AttentionInput<float>& input, View<const float> log_sum_exp) {
  const Point pattern = pass.point(points.pattern, layer);
  if (pass.probe != nullptr && pass.probe->wants_attention_at(pattern)) {
    pass.probe->observe_attention_at(pattern, input, log_sum_exp);
  }
  if (pass.wants(points.scores, layer)) {
    pass.probe->observe(pass.point(points.scores, layer),
                        head_planes(input, [&](auto b, auto head, auto out) {
                          scores_plane(pass, layer, points, input, b, head, out);
                        }));
  }
  if (pass.wants(points.pattern, layer)) {
    pass.probe->observe(pass.point(points.pattern, layer),
                        head_planes(input, [&](auto b, auto head, auto out) {
                          pattern_plane(pass, layer, points, input, log_sum_exp, b, head, out);
                        }));
  }
}

void observe_attention_gradients(const Pass& pass, std::int64_t layer,
                                 const AttentionPoints& points,
                                 const kernels::AttentionInput<float>& input,
                                 View<const float> log_sum_exp, View<const float> d_mixed) {
  if (pass.wants_gradient(points.pattern, layer)) {
    pass.probe->observe_gradient(
        pass.point(points.pattern, layer), head_planes(input, [&](auto b, auto head, auto out) {
          pattern_gradient(input, d_mixed, whole_plane(input, b, head), out);
        }));
  }
  if (pass.wants_gradient(points.scores, layer)) {
    Tensor<float> pattern(Shape{input.query.extent(1), input.key.extent(1)});
    pass.probe->observe_gradient(
        pass.point(points.scores, layer), head_planes(input, [&](auto b, auto head, auto out) {
          const kernels::AttentionTile tile = whole_plane(input, b, head);
          kernels::attention_pattern_tile(input, log_sum_exp, tile, pattern);
          pattern_gradient(input, d_mixed, tile, out);
          kernels::softmax_rows_backward(pattern, out);
        }));
  }
}

void observe_norm(const Pass& pass, std::int64_t layer, const NormPoints& points,
                  View<const float> x, const NormSaved& saved) {
  const std::int64_t channels = x.extent(1);
  if (points.input && pass.wants(*points.input, layer)) {
    Tensor<float> edited;
    pass.observe(*points.input, layer, pass.as_view(norm_input(pass, layer, points, x, edited)));
  }
  if (pass.wants(points.scale, layer)) {
    Tensor<float> scale(Shape{pass.view_batch(), pass.view_positions(), 1});
    kernels::reciprocal(saved.reciprocal_deviation, scale.view().reshape({pass.rows()}));
    pass.probe->observe(pass.point(points.scale, layer), scale);
  }
  if (pass.wants(points.normalized, layer)) {
    Tensor<float> edited, normalized(Shape{pass.view_batch(), pass.view_positions(), channels});
    normalized_values(pass, pass.point(points.normalized, layer),
                      norm_input(pass, layer, points, x, edited), saved, normalized);
    pass.probe->observe(pass.point(points.normalized, layer), normalized);
  }
}

void observe_norm_gradients(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                            const NormPoints& points, const NormOperands& norm) {
  if (points.input && pass.wants_gradient(*points.input, layer)) {
    Tensor<float> d_x(norm.x.shape());
    normalise_backward(stack, norm.x, norm.parameters, norm.saved, norm.d_out, d_x, {});
    pass.observe_gradient_rows(*points.input, layer, d_x);
  }
  const bool wants_scale = pass.wants_gradient(points.scale, layer);
  const bool wants_normalized = pass.wants_gradient(points.normalized, layer);
  if (!wants_scale && !wants_normalized) return;
  const std::int64_t channels = norm.x.extent(1);
  Tensor<float> scale(Shape{pass.view_batch(), pass.view_positions(), 1});
  Tensor<float> normalized(Shape{pass.view_batch(), pass.view_positions(), channels});
  kernels::standardise_rows_backward(standardised_rows(norm.x, norm.saved), norm.parameters.gain,
                                     norm.d_out,
                                     {.rows = normalized.view().reshape({pass.rows(), channels}),
                                      .scale = scale.view().reshape({pass.rows()})});
  pass.observe_gradient(points.scale, layer, scale);
  pass.observe_gradient(points.normalized, layer, normalized);
}

void observe_embedding(const Pass& pass, const kernels::EmbeddingInput<float>& input) {
  const std::int64_t channels = input.token_table.extent(1);
  for (const PointKind kind : {PointKind::embedding, PointKind::position}) {
    if (kind == PointKind::position && !input.position_table.present()) continue;
    if (!pass.wants(kind, -1)) continue;
    Tensor<float> values(Shape{input.tokens.extent(0), input.tokens.extent(1), channels});
    embedding_values(pass, input, kind, values);
    pass.observe(kind, -1, pass.as_view(values.view().reshape({pass.rows(), channels})));
  }
}

void observe_logits(const Pass& pass, const kernels::LinearParameters<float>& unembedding,
                    View<const float> x) {
  if (!pass.wants(PointKind::logits, -1)) return;
  Tensor<float> logits(
      Shape{pass.view_batch(), pass.view_positions(), unembedding.weight.extent(0)});
  kernels::linear_forward(x, unembedding, logits.view().reshape({pass.rows(), logits.shape()[2]}));
  pass.observe(PointKind::logits, -1, logits);
}

void observe_logit_gradients(const Pass& pass, const kernels::LinearParameters<float>& unembedding,
                             View<const float> x, const LogitLoss& loss) {
  if (!pass.wants_gradient(PointKind::logits, -1)) return;
  Tensor<float> logits(Shape{pass.rows(), unembedding.weight.extent(0)});
  Tensor<float> losses(Shape{pass.rows()});
  kernels::linear_forward(x, unembedding, logits);
  kernels::cross_entropy_forward_backward(logits, loss.targets, loss.scale, losses,
                                          {.rate = loss.label_smoothing});
  pass.observe_gradient_rows(PointKind::logits, -1, logits);
}

}  // namespace heed
