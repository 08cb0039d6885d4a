// Points of the residual stream head by head, (B, T, H, C): what each head reads, before its norm,
// and what it adds. The fast path holds neither; each function does nothing, and leaves every bit
// as it was, unless the pass has a probe or an editor for one of these points.
#pragma once

#include "model/activations.h"
#include "model/parameters.h"
#include "model/pass.h"

namespace heed {

// attention_in is the stream once for each head, and the inputs of query, key and value are
// attention_in, unless one of them is edited. `stream` (N, C) is residual_pre.
void observe_head_inputs(const GptConfig& config, std::int64_t layer, const Pass& pass,
                         View<const float> stream);

// Computes query_key_value (N, 3A) again for the heads whose input is edited: each normalises and
// projects its own copy of the stream. The norm's points are edited there too.
void edit_head_inputs(const GptConfig& config, const BlockParameters& parameters,
                      std::int64_t layer, const Pass& pass, View<const float> stream,
                      View<float> query_key_value);

// Their gradients, from that of query_key_value (N, 3A).
void observe_head_input_gradients(const GptConfig& config, const BlockParameters& parameters,
                                  std::int64_t layer, const Pass& pass,
                                  const BlockActivations& saved,
                                  View<const float> d_query_key_value);

// What each head adds to the stream: its mixed values times its rows of the projection. The bias
// belongs to no head. `mixed` is (N, A).
void observe_head_results(const GptConfig& config, const LinearWeights& projection,
                          std::int64_t layer, const Pass& pass, View<const float> mixed);

// Computes `out` (N, C), the projection of `mixed`, as the sum of the edited results and the bias.
void edit_head_results(const GptConfig& config, const LinearWeights& projection, std::int64_t layer,
                       const Pass& pass, View<const float> mixed, View<float> out);

// From the gradient of their sum, d_out (N, C).
void observe_head_result_gradients(const GptConfig& config, std::int64_t layer, const Pass& pass,
                                   View<const float> d_out);

}  // namespace heed
