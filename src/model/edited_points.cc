#include "model/edited_points.h"

#include <array>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/view_shapes.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

// A point of attention with these operands.
EditedPoint edited_plane(const Pass& pass, const Point& point,
                         const kernels::AttentionInput<float>& input) {
  EditedPoint edited = pass.edited_point(point);
  edited.attention = &input;
  edited.attention_begin = edited.first_sequence;
  return edited;
}

void edit_plane(const Pass& pass, const Point& point, const kernels::AttentionInput<float>& input,
                std::int64_t b, std::int64_t head, View<float> plane) {
  EditedPoint edited = edited_plane(pass, point, input);
  edited.first_sequence += b;
  edited.head = head;
  pass.editor->edit(edited, plane.reshape({1, 1, plane.extent(0), plane.extent(1)}));
}

// Row t of a matrix, as a matrix.
template <class T>
View<T> row_of(const View<T>& matrix, std::int64_t t) {
  return matrix.slice(0, t, t + 1);
}

// Calls visit(t) for the rows (N, C) that an edit changed: a pass that is edited nowhere keeps
// every bit.
template <class Visit>
void for_each_changed_row(View<const float> before, View<const float> after, Visit&& visit) {
  for (std::int64_t t = 0; t < before.extent(0); ++t) {
    if (!kernels::equal_bits(before[t], after[t])) visit(t);
  }
}

// A fully masked row becomes zeros, as in TransformerLens.
void update_pattern(View<const float> scores_before, View<const float> scores,
                    View<float> pattern) {
  for_each_changed_row(scores_before, scores, [&](std::int64_t t) {
    kernels::softmax_rows(row_of(scores, t), row_of(pattern, t));
  });
}

// What a head gives, out (T, D), where its pattern (T, S) is another than before.
void update_mixed(View<const float> pattern_before, View<const float> pattern,
                  View<const float> value, View<float> out) {
  for_each_changed_row(pattern_before, pattern, [&](std::int64_t t) {
    kernels::mix_rows(row_of(pattern, t), value, row_of(out, t));
  });
}

// (B, T, H, D) -> (T, D) of one head of one sequence.
template <class T>
View<T> of_head(View<T> heads, std::int64_t b, std::int64_t head) {
  return select(heads[b], 1, head);
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
  kernels::copy(from, copy);
  return copy;
}

// Calls visit(b, head) for all planes (B, H, T, S).
template <class Visit>
void for_each_plane(const Tensor<float>& planes, Visit&& visit) {
  for (std::int64_t b = 0; b < planes.shape()[0]; ++b) {
    for (std::int64_t head = 0; head < planes.shape()[1]; ++head) visit(b, head);
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
    pass.editor->edit(edited_plane(pass, pass.point(points.scores, layer), input), edited);
    for_each_plane(scores, [&](std::int64_t b, std::int64_t head) {
      update_pattern(scores.view()[b][head], edited.view()[b][head], pattern.view()[b][head]);
    });
  }
  pass.edit(pass.point(points.pattern, layer), pattern);
  const std::int64_t group = input.query.extent(2) / input.key.extent(2);
  for_each_plane(before, [&](std::int64_t b, std::int64_t head) {
    update_mixed(before.view()[b][head], pattern.view()[b][head],
                 of_head(input.value, b, head / group), of_head(mixed, b, head));
  });
}

void copy_position_rows(const kernels::EmbeddingInput<float>& input, View<float> out) {
  for (std::int64_t b = 0; b < out.extent(0); ++b) {
    const std::int64_t first = input.position(b, 0);
    kernels::copy(input.position_table.slice(0, first, first + out.extent(1)), out[b]);
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
    edit_plane(pass, pass.point(points.scores, layer), input, b, head, out);
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
    update_pattern(before, scores, out);
  }
  if (pass.edits_head(pass.point(points.pattern, layer), head)) {
    edit_plane(pass, pass.point(points.pattern, layer), input, b, head, out);
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
      update_mixed(before, plane, of_head(input.value, b, head / group), of_head(mixed, b, head));
    }
  }
}

View<const float> norm_input(const Pass& pass, std::int64_t layer, const NormPoints& points,
                             View<const float> x, Tensor<float>& edited) {
  if (!points.input || !pass.edits(pass.point(*points.input, layer))) return x;
  edited = Tensor<float>(x.shape());
  kernels::copy(x, edited);
  pass.edit(pass.point(*points.input, layer), pass.as_view(edited.view()));
  return edited;
}

void normalized_values(const Pass& pass, const Point& point, View<const float> x,
                       const NormSaved& saved, View<float> out) {
  kernels::standardise_rows(standardised_rows(x, saved), out.reshape(x.shape()));
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
    const Shape rows{pass.rows(), 1};
    const View<float> reciprocals = norm.saved.reciprocal_deviation.reshape(rows);
    kernels::reciprocal(reciprocals, scale.view().reshape(rows));
    Tensor<float> edited = copy_of(scale);
    pass.edit(scale_point, edited);
    const View<const float> changed = edited.view().reshape(rows);
    for_each_changed_row(scale.view().reshape(rows), changed, [&](std::int64_t row) {
      kernels::reciprocal(changed[row], reciprocals[row]);
    });
  }
  normalized_values(pass, normalized_point, x, norm.saved, after);
  const View<const float> rows = after.view().reshape(x.shape());
  for_each_changed_row(before.view().reshape(x.shape()), rows, [&](std::int64_t row) {
    kernels::apply_gain(row_of(rows, row), norm.parameters, row_of(norm.out, row));
  });
}

void embedding_values(const Pass& pass, const kernels::EmbeddingInput<float>& input, PointKind kind,
                      View<float> out) {
  if (kind == PointKind::embedding) {
    kernels::embedding_forward({.tokens = input.tokens,
                                .token_table = input.token_table,
                                .token_scale = input.token_scale},
                               out);
  } else {
    copy_position_rows(input, out);
  }
  pass.edit(pass.point(kind, -1), pass.as_view(out.reshape({pass.rows(), out.extent(2)})));
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
  bool changes = !kernels::equal_bits(token, edited_token);
  if (!input.position_table.present()) {
    if (changes) kernels::copy(edited_token, out);
    return;
  }
  const auto [position, edited_position] = both(pass, PointKind::position);
  changes = changes || !kernels::equal_bits(position, edited_position);
  // The sum is not that of the kernel, which scales and adds in one operation.
  if (changes) kernels::add(edited_token, edited_position, out);
}

}  // namespace heed
