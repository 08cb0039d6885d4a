#include "model/edited_points.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
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

// Softmax of a row; a fully masked row becomes zeros, as in TransformerLens.
void softmax_row(std::span<const float> scores, std::span<float> out) {
  const float largest = *std::ranges::max_element(scores);
  if (largest == -std::numeric_limits<float>::infinity()) {
    std::ranges::fill(out, 0.0F);
    return;
  }
  double sum = 0;
  for (std::size_t s = 0; s < out.size(); ++s) sum += out[s] = std::exp(scores[s] - largest);
  for (float& value : out) value = static_cast<float>(value / sum);
}

// out (D) = Σₛ pattern[s]·value[s], for value (S, D).
void mix_row(std::span<const float> pattern, View<const float> value, std::span<float> out) {
  std::vector<double> sums(out.size(), 0.0);
  for (std::int64_t s = 0; s < std::ssize(pattern); ++s) {
    const double share = pattern[static_cast<std::size_t>(s)];
    if (share == 0) continue;
    for (std::size_t d = 0; d < sums.size(); ++d) sums[d] += share * value(s, d);
  }
  for (std::size_t d = 0; d < sums.size(); ++d) out[d] = static_cast<float>(sums[d]);
}

// Whether an edit left a row as it was: a pass that is edited nowhere keeps every bit.
bool is_unchanged(std::span<const float> before, std::span<const float> after) {
  return std::memcmp(before.data(), after.data(), before.size_bytes()) == 0;
}

// (B, T, H, D) -> (T, D) of one head of one sequence.
template <class T>
View<T> of_head(View<T> heads, std::int64_t b, std::int64_t head) {
  return {heads[b].data() + head * heads.stride(2),
          {heads.extent(1), heads.extent(3)},
          {heads.stride(1), heads.stride(3)}};
}

// The scores or patterns (B, H, T, S) of all heads, by `compute` of one, (T, S).
template <class Compute>
Tensor<float> all_planes(const kernels::AttentionInput<float>& input, Compute&& compute) {
  Tensor<float> planes(Shape{input.query.extent(0), input.query.extent(2), input.query.extent(1),
                             input.key.extent(1)});
  for (std::int64_t b = 0; b < input.query.extent(0); ++b) {
    for (std::int64_t head = 0; head < input.query.extent(2); ++head) {
      compute(whole_plane(input, b, head), planes.view()[b][head]);
    }
  }
  return planes;
}

Tensor<float> copy_of(const Tensor<float>& from) {
  Tensor<float> copy(from.shape());
  std::ranges::copy(from.span(), copy.data());
  return copy;
}

// Calls visit(b, head, t, row of before, row of after) for the rows that differ.
template <class Visit>
void visit_changed_rows(const Tensor<float>& before, const Tensor<float>& after, Visit&& visit) {
  const Shape& shape = before.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t head = 0; head < shape[1]; ++head) {
      for (std::int64_t t = 0; t < shape[2]; ++t) {
        const std::span<const float> row = after.view()[b][head][t].span();
        if (!is_unchanged(before.view()[b][head][t].span(), row)) visit(b, head, t, row);
      }
    }
  }
}

// edit_attention() for an editor of all heads together.
void edit_attention_together(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                             const kernels::AttentionInput<float>& input,
                             View<const float> log_sum_exp, View<float> mixed) {
  const Tensor<float> before =
      all_planes(input, [&](const kernels::AttentionTile& tile, View<float> out) {
        kernels::attention_pattern_tile(input, log_sum_exp, tile, out);
      });
  Tensor<float> pattern = copy_of(before);
  if (pass.edits(pass.point(points.scores, layer))) {
    const Tensor<float> scores =
        all_planes(input, [&](const kernels::AttentionTile& tile, View<float> out) {
          kernels::attention_scores_tile(input, tile, out);
        });
    Tensor<float> edited = copy_of(scores);
    pass.edit(pass.point(points.scores, layer), edited);
    visit_changed_rows(scores, edited, [&](auto b, auto head, auto t, auto row) {
      softmax_row(row, pattern.view()[b][head][t].span());
    });
  }
  pass.edit(pass.point(points.pattern, layer), pattern);
  const std::int64_t group = input.query.extent(2) / input.key.extent(2);
  visit_changed_rows(before, pattern, [&](auto b, auto head, auto t, auto row) {
    mix_row(row, of_head(input.value, b, head / group), of_head(mixed, b, head)[t].span());
  });
}

void copy_position_rows(const Pass& pass, const kernels::EmbeddingInput<float>& input,
                        View<float> out) {
  for (std::int64_t b = 0; b < pass.view_batch(); ++b) {
    for (std::int64_t t = 0; t < pass.view_positions(); ++t) {
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

void scores_plane(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                  const kernels::AttentionInput<float>& input, std::int64_t b, std::int64_t head,
                  View<float> out) {
  kernels::attention_scores_tile(input, whole_plane(input, b, head), out);
  if (pass.edits_head(pass.point(points.scores, layer), head)) {
    edit_plane(pass, pass.point(points.scores, layer), b, head, out);
  }
}

void pattern_plane(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                   const kernels::AttentionInput<float>& input, View<const float> log_sum_exp,
                   std::int64_t b, std::int64_t head, View<float> out) {
  kernels::attention_pattern_tile(input, log_sum_exp, whole_plane(input, b, head), out);
  if (pass.edits_head(pass.point(points.scores, layer), head)) {
    Tensor<float> before(out.shape()), scores(out.shape());
    kernels::attention_scores_tile(input, whole_plane(input, b, head), before);
    scores_plane(pass, layer, points, input, b, head, scores);
    for (std::int64_t t = 0; t < out.extent(0); ++t) {
      const std::span<const float> edited = scores.view()[t].span();
      if (!is_unchanged(before.view()[t].span(), edited)) softmax_row(edited, out[t].span());
    }
  }
  if (pass.edits_head(pass.point(points.pattern, layer), head)) {
    edit_plane(pass, pass.point(points.pattern, layer), b, head, out);
  }
}

void edit_attention(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                    const kernels::AttentionInput<float>& input, View<const float> log_sum_exp,
                    View<float> mixed) {
  if (!pass.edits(pass.point(points.scores, layer)) &&
      !pass.edits(pass.point(points.pattern, layer)))
    return;
  require(input.dropout.rate == 0, ErrorCode::unsupported,
          "scores and patterns cannot be edited in training with dropout of attention {}: set it "
          "to 0",
          input.dropout.rate);
  if (pass.editor->edits_heads_together()) {
    return edit_attention_together(pass, layer, points, input, log_sum_exp, mixed);
  }
  const std::int64_t queries = input.query.extent(1), heads = input.query.extent(2);
  const std::int64_t group = heads / input.key.extent(2);
  Tensor<float> before(Shape{queries, input.key.extent(1)}), plane(before.shape());
  for (std::int64_t head = 0; head < heads; ++head) {
    if (!pass.edits_head(pass.point(points.scores, layer), head) &&
        !pass.edits_head(pass.point(points.pattern, layer), head)) {
      continue;
    }
    for (std::int64_t b = 0; b < input.query.extent(0); ++b) {
      kernels::attention_pattern_tile(input, log_sum_exp, whole_plane(input, b, head), before);
      pattern_plane(pass, layer, points, input, log_sum_exp, b, head, plane);
      const View<const float> value = of_head(input.value, b, head / group);
      const View<float> out = of_head(mixed, b, head);
      for (std::int64_t t = 0; t < queries; ++t) {
        const std::span<const float> row = plane.view()[t].span();
        if (!is_unchanged(before.view()[t].span(), row)) mix_row(row, value, out[t].span());
      }
    }
  }
}

View<const float> norm_input(const Pass& pass, std::int64_t layer, const NormPoints& points,
                             View<const float> x, Tensor<float>& edited) {
  if (!points.input || !pass.edits(pass.point(*points.input, layer))) return x;
  edited = Tensor<float>(x.shape());
  std::ranges::copy(x.span(), edited.data());
  pass.edit(pass.point(*points.input, layer),
            edited.view().reshape({pass.view_batch(), pass.view_positions(), x.extent(1)}));
  return edited;
}

void normalized_values(const Pass& pass, const Point& point, View<const float> x,
                       const NormSaved& saved, View<float> out) {
  const std::int64_t channels = x.extent(1);
  const View<float> rows = out.reshape({pass.rows(), channels});
  for (std::int64_t row = 0; row < pass.rows(); ++row) {
    const float mean = subtracted_mean(saved, row);
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      rows(row, channel) = (x(row, channel) - mean) * saved.reciprocal_deviation(row);
    }
  }
  pass.edit(point, out);
}

void edit_norm(const Pass& pass, std::int64_t layer, const NormPoints& points, View<const float> x,
               const NormOutput& norm) {
  const Point scale_point = pass.point(points.scale, layer);
  const Point normalized_point = pass.point(points.normalized, layer);
  if (!pass.edits(scale_point) && !pass.edits(normalized_point)) return;
  const std::int64_t channels = x.extent(1);
  const Shape shape{pass.view_batch(), pass.view_positions(), channels};
  Pass unedited = pass;
  unedited.editor = nullptr;
  Tensor<float> before(shape), after(shape);
  normalized_values(unedited, normalized_point, x, norm.saved, before);
  if (pass.edits(scale_point)) {
    Tensor<float> scale(Shape{pass.view_batch(), pass.view_positions(), 1});
    for (std::int64_t row = 0; row < pass.rows(); ++row) {
      scale[row] = 1.0F / norm.saved.reciprocal_deviation(row);
    }
    Tensor<float> edited(scale.shape());
    std::ranges::copy(scale.span(), edited.data());
    pass.edit(scale_point, edited);
    for (std::int64_t row = 0; row < pass.rows(); ++row) {
      if (edited[row] != scale[row]) norm.saved.reciprocal_deviation(row) = 1.0F / edited[row];
    }
  }
  normalized_values(pass, normalized_point, x, norm.saved, after);
  const kernels::NormParameters<float>& parameters = norm.parameters;
  for (std::int64_t row = 0; row < pass.rows(); ++row) {
    const auto of_row = [&](const Tensor<float>& rows) {
      return rows.span().subspan(static_cast<std::size_t>(row * channels),
                                 static_cast<std::size_t>(channels));
    };
    if (is_unchanged(of_row(before), of_row(after))) continue;
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      float& value = norm.out(row, channel);
      value = of_row(after)[static_cast<std::size_t>(channel)] * parameters.gain(channel);
      if (parameters.bias.present()) value += parameters.bias(channel);
    }
  }
}

void embedding_values(const Pass& pass, const kernels::EmbeddingInput<float>& input, PointKind kind,
                      View<float> out) {
  if (kind == PointKind::embedding) {
    kernels::embedding_forward({.tokens = input.tokens,
                                .token_table = input.token_table,
                                .token_scale = input.token_scale},
                               out);
  } else {
    copy_position_rows(pass, input, out);
  }
  pass.edit(pass.point(kind, -1), out);
}

void edit_embedding(const Pass& pass, const kernels::EmbeddingInput<float>& input,
                    View<float> out) {
  if (!pass.edits(pass.point(PointKind::embedding, -1)) &&
      !pass.edits(pass.point(PointKind::position, -1)))
    return;
  Pass unedited = pass;
  unedited.editor = nullptr;
  const auto both = [&](const Pass& of, PointKind kind) {
    std::array<Tensor<float>, 2> values{Tensor<float>(out.shape()), Tensor<float>(out.shape())};
    embedding_values(unedited, input, kind, values[0]);
    embedding_values(of, input, kind, values[1]);
    return values;
  };
  const auto [token, edited_token] = both(pass, PointKind::embedding);
  bool changes = !is_unchanged(token.span(), edited_token.span());
  if (!input.position_table.present()) {
    if (changes) std::ranges::copy(edited_token.span(), out.data());
    return;
  }
  const auto [position, edited_position] = both(pass, PointKind::position);
  changes = changes || !is_unchanged(position.span(), edited_position.span());
  // The sum is not that of the kernel, which scales and adds in one operation.
  if (changes) kernels::add(edited_token, edited_position, out);
}

}  // namespace heed
