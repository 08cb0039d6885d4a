// Operands of the kernels, templated on the number type: `float` for the fast path, `double` for
// the reference in gradient checks. Notation as in docs/notation.md.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace heed::kernels {

enum class Activation {
  gelu_tanh,  // 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))): GPT-2's "gelu_new"
  gelu_erf,   // 0.5·x·(1 + erf(x/√2)): "gelu"
  relu,       // max(x, 0)
};

// Inverted dropout: element (row, column) of a matrix is kept, and scaled by 1/(1 - rate), or set
// to zero, by a pure function of (key, row, column), so backward stores no mask.
struct Dropout {
  float rate = 0.0F;  // in [0, 1); 0: no dropout
  std::uint64_t key = 0;
};

template <class T>
struct EmbeddingInput {
  View<const std::int32_t> tokens;  // (B, T), each in [0, V)
  View<const T> token_table;        // (V, C)
  View<const T> position_table;     // (P, C); absent: no positions
  std::int64_t first_position = 0;  // position of tokens[:, 0]; first_position + T <= P
  std::span<const std::int64_t> first_positions{};  // (B), if it differs between sequences

  std::int64_t position(std::int64_t b, std::int64_t t) const {
    return (first_positions.empty() ? first_position
                                    : first_positions[static_cast<std::size_t>(b)]) +
           t;
  }
};

template <class T>
struct EmbeddingGradients {
  View<T> token_table;     // (V, C), accumulates
  View<T> position_table;  // (P, C), accumulates; absent: no positions
};

// Layer normalisation over the last dimension (Ba, Kiros, Hinton 2016).
template <class T>
struct NormParameters {
  View<const T> gain;  // (C)
  View<const T> bias;  // (C); absent: zero
  T epsilon = T(1e-5);
};

// Saved by forward for backward, one value per row.
template <class T>
struct NormStatistics {
  View<T> mean;                  // (N)
  View<T> reciprocal_deviation;  // (N), 1/√(variance + epsilon)
};

template <class T>
struct NormGradients {
  View<T> gain;  // (C), accumulates; absent: no gradients
  View<T> bias;  // (C), accumulates; absent: no bias
};

// The precision to which operands of a matrix product are rounded. Sums and all other operations
// use f32.
enum class Precision : std::uint8_t { f32, bf16 };

class PackedWeight;
class PreparedWeight;

// y = x·Wᵀ + b
template <class T>
struct LinearParameters {
  View<const T> weight;  // (O, I)
  View<const T> bias;    // (O); absent: zero
  Precision precision = Precision::f32;
  const PreparedWeight* prepared = nullptr;  // used by forward instead of `weight`
  const PackedWeight* packed = nullptr;      // `weight`, packed for f32 products
};

template <class T>
struct LinearGradients {
  View<T> weight;  // (O, I), accumulates; absent: no gradients
  View<T> bias;    // (O), accumulates; absent: no bias
};

enum class Mask {
  causal,  // query t has position S - T + t and attends to positions up to its own
  full,    // every query attends to the whole memory
};

// Scaled dot-product attention (Vaswani et al. 2017, eq. 1), head by head:
//   scores  = scale · query·keyᵀ, −∞ where masked      (T, S)
//   pattern = softmax of each row of scores            (T, S)
//   out     = dropout(pattern)·value                   (T, D)
// Views may be strided (only the last dimension must be dense), so that heads are read in place
// from the output of projections or from a cache. Causal requires T <= S.
template <class T>
struct AttentionInput {
  View<const T> query;  // (B, T, H, D)
  View<const T> key;    // (B, S, H, D)
  View<const T> value;  // (B, S, H, D)
  Mask mask = Mask::causal;
  T scale = T(1);
  Dropout dropout{};  // row = (b·H + h)·T + t, column = s
  // With bf16 and more than three queries, the operands of every product (query, key, value,
  // pattern and, in backward, gradients) are rounded; softmax and sums stay in f32.
  Precision precision = Precision::f32;
};

// A rectangle of one head's (T, S) plane.
struct AttentionTile {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t query_begin = 0;
  std::int64_t query_end = 0;
  std::int64_t key_begin = 0;
  std::int64_t key_end = 0;
};

template <class T>
struct AttentionGradients {
  View<T> query;  // (B, T, H, D), overwritten
  View<T> key;    // (B, S, H, D), overwritten
  View<T> value;  // (B, S, H, D), overwritten
};

// Decoupled weight decay (Loshchilov, Hutter 2019, algorithm 2), for one group of parameters.
template <class T>
struct AdamWStep {
  T learning_rate = T(1e-3);
  T beta1 = T(0.9);
  T beta2 = T(0.95);
  T epsilon = T(1e-8);
  T weight_decay = T(0);
  T gradient_scale = T(1);  // scales the gradients first: clipping, averaging
  std::int64_t step = 1;    // counts from 1; corrects the bias of the moments
};

template <class T>
struct AdamWState {
  std::span<T> parameters;
  std::span<const T> gradients;
  std::span<T> first_moment;
  std::span<T> second_moment;
};

// Rows with this target contribute neither loss nor gradient.
inline constexpr std::int32_t ignored_target = -1;

}  // namespace heed::kernels
