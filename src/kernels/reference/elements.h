// An executable specification of kernels/elements.h, as reference.h is of kernels.h.
#pragma once

#include <span>

#include "kernels/operands.h"

namespace heed::kernels::reference {

template <class T>
void fill(View<T> x, T value);
template <class T>
void copy(View<const T> from, View<T> to);
template <class T>
void scale(View<T> x, T factor);
template <class T>
void accumulate(View<const T> from, View<T> to, T factor);
template <class T>
void subtract(View<const T> x, View<const T> y, View<T> out);
template <class T>
void reciprocal(View<const T> x, View<T> out);
template <class T>
bool equal_bits(View<const T> x, View<const T> y);
template <class T>
double sum(View<const T> x, double start);

template <class T>
void gather_rows(View<const T> from, std::span<const std::int32_t> indices, View<T> to);
template <class T>
void scatter_add_rows(View<const T> from, std::span<const std::int32_t> indices, View<T> to);

template <class T>
void softmax_rows(View<const T> scores, View<T> out);
template <class T>
void softmax_rows_backward(View<const T> pattern, View<T> gradient);
template <class T>
void mix_rows(View<const T> pattern, View<const T> value, View<T> out);

// mean absent: 0
template <class T>
void standardise_rows(View<const T> x, View<const T> mean, View<const T> reciprocal_deviation,
                      View<T> out);
template <class T>
struct StandardisedBackward {
  View<const T> x;                     // (N, C)
  View<const T> mean;                  // (N); absent: 0
  View<const T> reciprocal_deviation;  // (N)
  View<const T> gain;                  // (C)
  View<const T> d_out;                 // (N, C)
};
template <class T>
void standardise_rows_backward(const StandardisedBackward<T>& operands, View<T> d_rows,
                               View<T> d_scale);
template <class T>
void apply_gain(View<const T> x, const NormParameters<T>& parameters, View<T> out);

template <class T>
void sinusoids(View<T> sine, View<T> cosine);
template <class T>
void rotary_angles(std::span<const std::int64_t> positions, View<const double> frequencies,
                   double magnitude, View<T> cosine, View<T> sine);

// losses (N), and smoothed losses where they are wanted.
template <class T>
void cross_entropy_piece_losses(const VocabularySums<T>& sums, std::int64_t vocabulary,
                                View<const std::int32_t> targets, View<T> losses,
                                const LabelSmoothing<T>& smoothing);

}  // namespace heed::kernels::reference
