// Changing the points that the fast path never holds in memory. Each function does nothing, and
// leaves every bit as it was, unless the pass has an editor for the point.
#pragma once

#include "kernels/operands.h"
#include "model/derived_points.h"
#include "model/pass.h"
#include "tensor/tensor.h"

namespace heed {

kernels::AttentionTile whole_plane(const kernels::AttentionInput<float>& input, std::int64_t b,
                                   std::int64_t head);

// One head of one sequence of `input`, (T, S): its scores, and their softmax, as the pass uses
// them: edited where the pass edits them.
void scores_plane(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                  const kernels::AttentionInput<float>& input, std::int64_t b, std::int64_t head,
                  View<float> out);
void pattern_plane(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                   const kernels::AttentionInput<float>& input, View<const float> log_sum_exp,
                   std::int64_t b, std::int64_t head, View<float> out);

// Computes `mixed` (B, T, H, D) again for the heads whose scores or pattern are edited, from a
// pattern held in memory, one head of one sequence at a time.
void edit_attention(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                    const kernels::AttentionInput<float>& input, View<const float> log_sum_exp,
                    View<float> mixed);

// x (N, C) as the norm reads it: x itself, or a copy in `edited` where the pass edits the norm's
// input.
View<const float> norm_input(const Pass& pass, std::int64_t layer, const NormPoints& points,
                             View<const float> x, Tensor<float>& edited);

// The centred and scaled rows of x (N, C) as they are used, (B, T, C).
void normalized_values(const Pass& pass, const Point& point, View<const float> x,
                       const NormSaved& saved, View<float> out);

// Computes the output (N, C) of a norm of x (N, C) again where its scale or its normalised rows are
// edited. An edited scale stays in `saved`.
struct NormOutput {
  const kernels::NormParameters<float>& parameters;
  const NormSaved& saved;
  View<float> out;
};
void edit_norm(const Pass& pass, std::int64_t layer, const NormPoints& points, View<const float> x,
               const NormOutput& norm);

// The token or the position embedding alone, as the pass uses it, (B, T, C).
void embedding_values(const Pass& pass, const kernels::EmbeddingInput<float>& input, PointKind kind,
                      View<float> out);

// Computes their sum `out` (B, T, C) again where one of them is edited.
void edit_embedding(const Pass& pass, const kernels::EmbeddingInput<float>& input, View<float> out);

}  // namespace heed
