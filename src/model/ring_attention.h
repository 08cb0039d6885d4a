// Attention of sequences that are divided among a ring of processes (Liu, Zaharia, Abbeel 2023).
// Each has the queries, keys and values of its chunks. Keys and values go around the ring; each
// process attends from its queries to those that arrive while it sends them on, and merges what it
// gets by the log-sum-exps. In backward they go around again, and their gradients with them.
#pragma once

#include "model/stages.h"

namespace heed {

// mixed (2B, c, H, D) and log_sum_exp (2B, H, c) of the own queries, over the keys and values of
// all members. `input` has the own ones, and is that of whole sequences but for them.
void attend_around_ring(const LayerPass& at, const kernels::AttentionInput<float>& input,
                        View<float> mixed, View<float> log_sum_exp);

// Of the own queries, keys and values, with respect to the losses of all members; overwritten.
void attend_around_ring_backward(const LayerPass& at, const kernels::AttentionInput<float>& input,
                                 View<const float> mixed, View<const float> log_sum_exp,
                                 View<const float> d_mixed,
                                 const kernels::AttentionGradients<float>& gradients);

}  // namespace heed
