// Operands of the kernels, templated on the number type: `float` for the fast path, `double` for
// the reference in gradient checks. Notation as in docs/notation.md.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/activation.h"
#include "tensor/view.h"

namespace heed::kernels {

// What a step of decoding gives as the number of positions of its sequences, which is 1: its rows
// are not those of a prompt of one token (see allow_integers_for_long_rows).
inline constexpr std::int64_t decoding_step = -1;

// Inverted dropout: element (row, column) of a matrix is kept, and scaled by 1/(1 - rate), or set
// to zero, by a pure function of (key, row, column), so backward stores no mask.
struct Dropout {
  float rate = 0.0F;  // in [0, 1); 0: no dropout
  std::uint64_t key = 0;
  std::uint32_t first_column = 0;  // column 0 here is this one of the whole mask
};

template <class T>
struct EmbeddingInput {
  View<const std::int32_t> tokens;  // (B, T), each in [0, V)
  View<const T> token_table;        // (V, C)
  View<const T> position_table;     // (P, C); absent: no positions
  T token_scale = T(1);             // of the token's row
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

// Which channels of a head rotate together.
enum class RotaryPairing {
  halves,      // i with i + R/2: GPT-NeoX, and LLaMA as Hugging Face stores it
  neighbours,  // 2i with 2i + 1: the paper, GPT-J
};

// Angles of rotary position embeddings (Su et al. 2021), of pair i at the position of row n.
template <class T>
struct RotaryTable {
  View<const T> cosine;  // (N, R/2)
  View<const T> sine;    // (N, R/2)
  RotaryPairing pairing = RotaryPairing::halves;
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
  T soft_cap = T(0);                         // outputs become cap·tanh(outputs/cap); 0: no cap
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

// Relative position bias (Raffel et al. 2020): a number for each head and distance s − (S − T + t)
// of a memory position from a query's. A table (H, 2P − 1) with first = 1 − P serves every
// attention of up to P positions.
template <class T>
struct PositionBias {
  View<const T> values{};  // (H, R), the last dimension dense; absent: none
  std::int64_t first =
      0;  // the distance of values[:, 0]: those of all visible pairs are in the table

  bool present() const { return values.present(); }
  // The bias of head `head` alone, for attention of one head.
  PositionBias of_head(std::int64_t head) const {
    return present() ? PositionBias{values.slice(0, head, head + 1), first} : *this;
  }
};

// Scaled dot-product attention (Vaswani et al. 2017, eq. 1), head by head:
//   scores  = scale · query·keyᵀ + bias, −∞ where masked      (T, S)
//   pattern = softmax of each row of scores            (T, S)
//   out     = dropout(pattern)·value                   (T, D)
// G key heads serve H query heads, a multiple of G (Ainslie et al. 2023): query head h attends to
// key head h / (H / G). Views may be strided (only the last dimension must be dense), so that heads
// are read in place from the output of projections or from a cache. With a stride of 0, sequences
// of queries share one memory. Causal requires T <= S.
template <class T>
struct AttentionInput {
  View<const T> query;  // (B, T, H, D)
  View<const T> key;    // (B, S, G, D)
  View<const T> value;  // (B, S, G, D)
  Mask mask = Mask::causal;
  T scale = T(1);
  Dropout dropout{};  // row = (b·H + h)·P + (P − T + t) for P positions, column = s
  // With bf16 and more than three positions, the operands of every product (query, key, value,
  // pattern and, in backward, gradients) are rounded; softmax and sums stay in f32.
  Precision precision = Precision::f32;
  // Causal only: a query sees itself and the window − 1 positions before it; 0: all of them.
  std::int64_t window = 0;
  // scores = soft_cap · tanh(scale · query·keyᵀ / soft_cap) where not masked; 0: no cap.
  T soft_cap = T(0);
  // P: the length of the pass whose last T queries these are; 0: T. It alone selects the
  // arithmetic (row by row, blocks, tiles), so that the result of a query does not depend on how
  // many queries are computed together: if P − T is a multiple of 64, out and log_sum_exp of each
  // row equal those of the whole pass to the bit.
  std::int64_t positions = 0;
  // Not with a soft cap.
  PositionBias<T> position_bias{};
  // Causal only, without position bias: how far after the end of the memory the queries are, which
  // is then a part of what they attend to: query t has position S − T + query_offset + t of it. A
  // query that a window lets see none of it has out = 0 and log_sum_exp = −∞.
  std::int64_t query_offset = 0;
};

// What attention to a part of the memory gave.
template <class T>
struct AttentionPart {
  View<const T> out;          // (B, T, H, D)
  View<const T> log_sum_exp;  // (B, H, T)
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
  View<T> key;    // (B, S, G, D), overwritten: summed over the query heads of a group
  View<T> value;  // (B, S, G, D), the same
  // (H, R), accumulates: summed over batch and pairs of equal distance, in an order that depends on
  // shapes and thread count only; absent: not wanted. Needs a scale other than 0.
  View<T> position_bias{};
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

// Label smoothing (Szegedy et al. 2016): `rate` of the probability of a target is spread evenly
// over the vocabulary, the target included. The loss that is differentiated becomes
//   (1 − rate) · loss + rate · mean over the vocabulary of −log p.
template <class T>
struct LabelSmoothing {
  T rate = T(0);     // in [0, 1]; 0: none
  View<T> losses{};  // (N), the smoothed losses, overwritten; absent: not wanted
};

// Words first, first + 1, … of a vocabulary that does not come all at once.
struct VocabularyPiece {
  std::int64_t first = 0;
  std::int64_t vocabulary = 0;  // V, of the whole
};

// Of the logits of each row, over those pieces of the vocabulary that have come.
template <class T>
struct VocabularySums {
  View<T> normaliser;    // (N): log Σ exp(logit); −∞ before the first piece
  View<T> target_logit;  // (N), once its piece has come
  View<T> logit_sum{};   // (N): Σ logit, 0 before the first piece; absent: not wanted
};

}  // namespace heed::kernels
