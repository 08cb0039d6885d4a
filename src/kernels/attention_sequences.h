// Attention of many sequences in one call: those of a batch, of different lengths or with caches of
// their own, each to its own memory. Threads share sequences, or the heads and tiles of a single
// one; a sequence has the same bits beside any others.
#pragma once

#include <span>

#include "kernels/kernels.h"
#include "kernels/quantised_cache.h"

namespace heed::kernels {

// A sequence, or several of one length whose memory is one view. Its keys and values are those of
// `input` or, where these rows are present, those of a quantised cache.
struct SequenceAttention {
  AttentionInput<float> input;
  View<float> out;          // (B, T, H, D)
  View<float> log_sum_exp;  // (B, H, T)
  ConstQuantisedRows quantised_key{};
  ConstQuantisedRows quantised_value{};

  bool is_quantised() const { return quantised_key.rows.present(); }
  // Of one that is: the same as attention to the cache.
  QuantisedCacheAttention to_cache() const {
    return {.query = input.query,
            .key = quantised_key,
            .value = quantised_value,
            .mask = input.mask,
            .scale = input.scale,
            .window = input.window,
            .soft_cap = input.soft_cap,
            .positions = input.positions,
            .position_bias = input.position_bias};
  }
};
void attention_forward(std::span<const SequenceAttention> sequences);

// Gradients of position biases accumulate in the order of the sequences.
struct SequenceAttentionBackward {
  AttentionInput<float> input;
  View<const float> out;
  View<const float> log_sum_exp;
  View<const float> d_out;
  AttentionGradients<float> gradients;
};
void attention_backward(std::span<const SequenceAttentionBackward> sequences);

}  // namespace heed::kernels
