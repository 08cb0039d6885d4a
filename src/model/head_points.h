// Points of the residual stream head by head: what each head reads, before its norm,
// and what it adds. The fast path holds neither; each function does nothing, and leaves every bit
// as it was, unless the pass has a probe or an editor for one of these points.
#pragma once

#include "model/stages.h"

namespace heed {

// attention_in is the stream once for each head, (B, T, H, C), and the inputs of query, key and
// value, the last two once for each key/value head, (B, T, G, C), are attention_in, unless one of
// them is edited. `stream` (N, C) is residual_pre.
void observe_head_inputs(const LayerPass& at, View<const float> stream);

// Computes query_key_value (N, A + 2K) again for the heads whose input an edit changed: each
// normalises and projects its own copy of the stream. The norm's points are edited there too.
void edit_head_inputs(const LayerPass& at, View<const float> stream, View<float> query_key_value);

// Their gradients, from that of query_key_value (N, A + 2K).
void observe_head_input_gradients(const LayerPass& at, const BlockActivations& saved,
                                  View<const float> d_query_key_value);

// Whether the pass edits what heads read, or the gradient of it, so that backward goes on head by
// head.
bool backward_is_by_head(const LayerPass& at);

// Backward of the projections and of the norm before them, where backward_is_by_head(): from the
// gradient of query_key_value, buffers.query_key_value, to that of the stream, which is added to
// buffers.residual. Edits, then observes, the gradients of what heads read. Those of the norm's
// points are of the norm that heads share: of heads that read the stream as it is and, where a
// parallel branch shares it, of that branch.
void head_inputs_backward(const LayerPass& at, const BlockGradients& gradients,
                          const BlockActivations& saved, const ActivationGradients& buffers);

// Edits, then observes, queries and keys as attention reads them, where they are not their
// projections.
void visit_positioned(const LayerPass& at, const AttentionActivations& saved);

// What each head adds to the stream, (N / T, T, H, C): its mixed values, of (N, A), times its rows
// of the projection. The bias belongs to no head. Multiplies as a pass of this length does.
Tensor<float> results_of_heads(const StackSpecification& stack, const LinearWeights& projection,
                               View<const float> mixed, std::int64_t positions,
                               std::int64_t arithmetic_length);

// The same at the points of a pass. `mixed` is (N, A).
void observe_head_results(const LayerPass& at, View<const float> mixed);

// Adds to `out` (N, C), the projection of `mixed`, what edits of the results change.
void edit_head_results(const LayerPass& at, View<const float> mixed, View<float> out);

// From the gradient of their sum, d_out (N, C).
void observe_head_result_gradients(const LayerPass& at, View<const float> d_out);

}  // namespace heed
