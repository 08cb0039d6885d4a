#include "model/edited_points.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

void edit_plane(const Pass& pass, const Point& point, std::int64_t b, std::int64_t head,
                View<float> plane) {
  EditedPoint edited = pass.edited_point(point);
  edited.first_sequence += b;
  edited.head = head;
  pass.editor->edit(edited, plane.reshape({1, 1, plane.extent(0), plane.extent(1)}));
}

// Softmax of each row, in place; a fully masked row becomes zeros, as in TransformerLens.
void softmax_rows(View<float> plane) {
  for (std::int64_t t = 0; t < plane.extent(0); ++t) {
    const std::span<float> row = plane[t].span();
    const float largest = *std::ranges::max_element(row);
    if (largest == -std::numeric_limits<float>::infinity()) {
      std::ranges::fill(row, 0.0F);
      continue;
    }
    double sum = 0;
    for (float& value : row) sum += value = std::exp(value - largest);
    for (float& value : row) value = static_cast<float>(value / sum);
  }
}

// out[t] = Σₛ pattern[t, s]·value[s], for value (S, D) and out (T, D).
void mix_values(View<const float> pattern, View<const float> value, View<float> out) {
  for (std::int64_t t = 0; t < pattern.extent(0); ++t) {
    std::vector<double> sums(static_cast<std::size_t>(value.extent(1)), 0.0);
    for (std::int64_t s = 0; s < pattern.extent(1); ++s) {
      const double share = pattern(t, s);
      if (share == 0) continue;
      for (std::size_t d = 0; d < sums.size(); ++d) sums[d] += share * value(s, d);
    }
    for (std::size_t d = 0; d < sums.size(); ++d) out(t, d) = static_cast<float>(sums[d]);
  }
}

// (B, T, H, D) -> (T, D) of one head of one sequence.
template <class T>
View<T> of_head(View<T> heads, std::int64_t b, std::int64_t head) {
  return {heads[b].data() + head * heads.stride(2),
          {heads.extent(1), heads.extent(3)},
          {heads.stride(1), heads.stride(3)}};
}

void copy_position_rows(const Pass& pass, const kernels::EmbeddingInput<float>& input,
                        View<float> out) {
  for (std::int64_t b = 0; b < pass.batch; ++b) {
    for (std::int64_t t = 0; t < pass.positions; ++t) {
      std::copy_n(&input.position_table(input.position(b, t), 0), out.extent(2), &out(b, t, 0));
    }
  }
}

}  // namespace

kernels::AttentionTile whole_plane(const kernels::AttentionInput<float>& input, std::int64_t b,
                                   std::int64_t head) {
  return {.batch = b,
          .head = head,
          .query_begin = 0,
          .query_end = input.query.extent(1),
          .key_begin = 0,
          .key_end = input.key.extent(1)};
}

void scores_plane(const Pass& pass, std::int64_t layer, const kernels::AttentionInput<float>& input,
                  std::int64_t b, std::int64_t head, View<float> out) {
  kernels::attention_scores_tile(input, whole_plane(input, b, head), out);
  if (pass.edits_head({PointKind::scores, layer}, head)) {
    edit_plane(pass, {PointKind::scores, layer}, b, head, out);
  }
}

void pattern_plane(const Pass& pass, std::int64_t layer,
                   const kernels::AttentionInput<float>& input, View<const float> log_sum_exp,
                   std::int64_t b, std::int64_t head, View<float> out) {
  if (pass.edits_head({PointKind::scores, layer}, head)) {
    scores_plane(pass, layer, input, b, head, out);
    softmax_rows(out);
  } else {
    kernels::attention_pattern_tile(input, log_sum_exp, whole_plane(input, b, head), out);
  }
  if (pass.edits_head({PointKind::pattern, layer}, head)) {
    edit_plane(pass, {PointKind::pattern, layer}, b, head, out);
  }
}

void edit_attention(const Pass& pass, std::int64_t layer,
                    const kernels::AttentionInput<float>& input, View<const float> log_sum_exp,
                    View<float> mixed) {
  if (!pass.edits({PointKind::scores, layer}) && !pass.edits({PointKind::pattern, layer})) return;
  check(input.dropout.rate == 0, "edits of patterns run without dropout");
  Tensor<float> plane(Shape{input.query.extent(1), input.key.extent(1)});
  for (std::int64_t head = 0; head < input.query.extent(2); ++head) {
    if (!pass.edits_head({PointKind::scores, layer}, head) &&
        !pass.edits_head({PointKind::pattern, layer}, head)) {
      continue;
    }
    for (std::int64_t b = 0; b < input.query.extent(0); ++b) {
      pattern_plane(pass, layer, input, log_sum_exp, b, head, plane);
      mix_values(plane, of_head(input.value, b, head), of_head(mixed, b, head));
    }
  }
}

View<const float> norm_input(const Pass& pass, std::int64_t layer, const NormPoints& points,
                             View<const float> x, Tensor<float>& edited) {
  if (!points.input || !pass.edits({*points.input, layer})) return x;
  edited = Tensor<float>(x.shape());
  std::ranges::copy(x.span(), edited.data());
  pass.edit({*points.input, layer},
            edited.view().reshape({pass.batch, pass.positions, x.extent(1)}));
  return edited;
}

void normalized_values(const Pass& pass, const Point& point, View<const float> x,
                       const NormSaved& saved, View<float> out) {
  const std::int64_t channels = x.extent(1);
  const View<float> rows = out.reshape({pass.rows(), channels});
  for (std::int64_t row = 0; row < pass.rows(); ++row) {
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      rows(row, channel) = (x(row, channel) - saved.mean(row)) * saved.reciprocal_deviation(row);
    }
  }
  pass.edit(point, out);
}

void edit_norm(const Pass& pass, std::int64_t layer, const NormPoints& points, View<const float> x,
               const NormOutput& norm) {
  const Point scale_point{points.scale, layer};
  const Point normalized_point{points.normalized, layer};
  if (!pass.edits(scale_point) && !pass.edits(normalized_point)) return;
  if (pass.edits(scale_point)) {
    Tensor<float> scale(Shape{pass.batch, pass.positions, 1});
    for (std::int64_t row = 0; row < pass.rows(); ++row) {
      scale[row] = 1.0F / norm.saved.reciprocal_deviation(row);
    }
    pass.edit(scale_point, scale);
    for (std::int64_t row = 0; row < pass.rows(); ++row) {
      norm.saved.reciprocal_deviation(row) = 1.0F / scale[row];
    }
  }
  const std::int64_t channels = x.extent(1);
  const kernels::NormParameters<float>& parameters = norm.parameters;
  normalized_values(pass, normalized_point, x, norm.saved,
                    norm.out.reshape({pass.batch, pass.positions, channels}));
  for (std::int64_t row = 0; row < pass.rows(); ++row) {
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      float& value = norm.out(row, channel);
      value *= parameters.gain(channel);
      if (parameters.bias.present()) value += parameters.bias(channel);
    }
  }
}

void embedding_values(const Pass& pass, const kernels::EmbeddingInput<float>& input, PointKind kind,
                      View<float> out) {
  if (kind == PointKind::embedding) {
    kernels::embedding_forward({.tokens = input.tokens, .token_table = input.token_table}, out);
  } else {
    copy_position_rows(pass, input, out);
  }
  pass.edit({kind, -1}, out);
}

void edit_embedding(const Pass& pass, const kernels::EmbeddingInput<float>& input,
                    View<float> out) {
  if (!pass.edits({PointKind::embedding, -1}) && !pass.edits({PointKind::position, -1})) return;
  Tensor<float> position(out.shape());
  embedding_values(pass, input, PointKind::embedding, out);
  embedding_values(pass, input, PointKind::position, position);
  kernels::add(out, position, out);
}

}  // namespace heed
