#include "model/derived_points.h"

#include <algorithm>
#include <limits>

#include "kernels/dropout_hash.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/edited_points.h"
#include "model/stages.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

// Shown after the end of the shorter of several texts.
constexpr float no_score = -std::numeric_limits<float>::infinity();
constexpr float no_weight = 0.0F;

// Calls compute(text, b, head, out (T, S)) for every head of every sequence of each of `texts`: (B,
// H, T, S) of the longest, with `padding` after the ends of others.
template <class Text, class Compute>
Tensor<float> head_planes(std::span<const Text> texts, float padding, Compute&& compute) {
  std::int64_t batch = 0, queries = 0, keys = 0;
  for (const Text& text : texts) {
    batch += text.input.query.extent(0);
    queries = std::max(queries, text.input.query.extent(1));
    keys = std::max(keys, text.input.key.extent(1));
  }
  const std::int64_t heads = texts.front().input.query.extent(2);
  Tensor<float> planes(Shape{batch, heads, queries, keys});
  if (texts.size() > 1) kernels::fill(planes, padding);
  std::int64_t first = 0;
  for (std::size_t number = 0; number < texts.size(); ++number) {
    const kernels::AttentionInput<float>& input = texts[number].input;
    const Shape own{input.query.extent(1), input.key.extent(1)};
    for (std::int64_t b = 0; b < input.query.extent(0); ++b, ++first) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const View<float> plane = planes.view()[first][h];
        if (texts.size() == 1) {
          compute(number, b, h, plane);
          continue;
        }
        Tensor<float> whole(own);
        compute(number, b, h, whole.view());
        kernels::copy(whole, plane.slice(0, 0, own[0]).slice(1, 0, own[1]));
      }
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
                       std::span<const Attended> texts) {
  const Point pattern = pass.point(points.pattern, layer);
  if (pass.probe != nullptr && pass.probe->wants_attention_at(pattern)) {
    for (std::size_t text = 0; text < texts.size(); ++text) {
      pass.probe->observe_attention_at(pattern, texts[text].input, texts[text].log_sum_exp,
                                       static_cast<std::int64_t>(text));
    }
  }
  Pass of_text = pass;
  if (pass.wants(points.scores, layer)) {
    pass.probe->observe(pass.point(points.scores, layer),
                        head_planes(texts, no_score, [&](auto text, auto b, auto head, auto out) {
                          of_text.first_sequence =
                              pass.first_sequence + static_cast<std::int64_t>(text);
                          scores_plane(of_text, layer, points, texts[text].input, b, head, out);
                        }));
  }
  if (pass.wants(points.pattern, layer)) {
    pass.probe->observe(pass.point(points.pattern, layer),
                        head_planes(texts, no_weight, [&](auto text, auto b, auto head, auto out) {
                          of_text.first_sequence =
                              pass.first_sequence + static_cast<std::int64_t>(text);
                          pattern_plane(of_text, layer, points, texts[text].input,
                                        texts[text].log_sum_exp, b, head, out);
                        }));
  }
}

void observe_attention_gradients(const Pass& pass, std::int64_t layer,
                                 const AttentionPoints& points,
                                 std::span<const kernels::SequenceAttentionBackward> texts) {
  if (pass.wants_gradient(points.pattern, layer)) {
    pass.probe->observe_gradient(
        pass.point(points.pattern, layer),
        head_planes(texts, no_weight, [&](auto text, auto b, auto head, auto out) {
          const auto& own = texts[text];
          pattern_gradient(own.input, own.d_out, whole_plane(own.input, b, head), out);
        }));
  }
  if (pass.wants_gradient(points.scores, layer)) {
    pass.probe->observe_gradient(
        pass.point(points.scores, layer),
        head_planes(texts, no_weight, [&](auto text, auto b, auto head, auto out) {
          if (pass.frozen.pattern) return kernels::fill(out, 0.0F);
          const auto& own = texts[text];
          const kernels::AttentionTile tile = whole_plane(own.input, b, head);
          Tensor<float> pattern(out.shape());
          kernels::attention_pattern_tile(own.input, own.log_sum_exp, tile, pattern);
          pattern_gradient(own.input, own.d_out, tile, out);
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
  // One that is edited is shown as it is left.
  if (points.input && pass.wants_gradient(*points.input, layer) &&
      !pass.edits_gradient(*points.input, layer)) {
    Tensor<float> d_x(norm.x.shape());
    normalise_backward(stack, pass.frozen, norm.parameters, norm.saved,
                       {.x = norm.x, .d_out = norm.d_out, .d_x = d_x}, {});
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
