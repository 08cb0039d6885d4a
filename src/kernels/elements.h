// Kernels that move, fill, add up and compare numbers: what a model does between the operations of
// kernels.h. kernels/reference/reference.h has plain ones, in any precision.
//
// Views may have any strides unless a comment says otherwise; operands of one shape. Outputs
// overwrite unless a comment says that they accumulate. Each element is rounded as its formula
// reads, one operation at a time, and sums go in the order of their indices: results are the same
// for every instruction set and thread count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/operands.h"
#include "kernels/prepared_weight.h"

namespace heed::kernels {

void fill(View<float> x, float value);

// to = from, which must not overlap unless they are the same.
void copy(View<const float> from, View<float> to);
void copy(View<const std::int32_t> from, View<std::int32_t> to);
void copy(View<const std::byte> from, View<std::byte> to);

// x = factor · x
void scale(View<float> x, float factor);

// to += factor · from
void accumulate(View<const float> from, View<float> to, float factor = 1.0F);

// out = x − y; out may be x or y.
void subtract(View<const float> x, View<const float> y, View<float> out);

// out = 1 / x; out may be x.
void reciprocal(View<const float> x, View<float> out);

// Whether all elements have the same bits: 0 and −0 differ, a NaN is itself.
bool equal_bits(View<const float> x, View<const float> y);

// start + x₀ + x₁ + …, in double, of x (N).
double sum(View<const float> x, double start = 0.0);

// to (N, C): row n is row indices[n] of from (R, C). Throws Error{invalid_argument} for an index
// outside of it.
void gather_rows(View<const float> from, std::span<const std::int32_t> indices, View<float> to);
// Its backward: row indices[n] of to (R, C) accumulates row n of from (N, C), in the order of n.
void scatter_add_rows(View<const float> from, std::span<const std::int32_t> indices,
                      View<float> to);

// out (N, S) = softmax of each row of scores (N, S), whose sum is in double; out may be scores. A
// row of −∞ alone becomes zeros. Backward: gradient (N, S), by out, becomes that by the scores,
// pattern · (gradient − Σ pattern · gradient).
void softmax_rows(View<const float> scores, View<float> out);
void softmax_rows_backward(View<const float> pattern, View<float> gradient);

// out (N, D) = pattern (N, S) · value (S, D), summed in double. A share of 0 adds nothing, whatever
// its value is.
void mix_rows(View<const float> pattern, View<const float> value, View<float> out);

// out (N, C) = (x − mean) · reciprocal_deviation of rows x (N, C): what a norm multiplies by its
// gain.
struct StandardisedRows {
  View<const float> x;                     // (N, C)
  View<const float> mean;                  // (N); absent: 0
  View<const float> reciprocal_deviation;  // (N)
};
void standardise_rows(const StandardisedRows& rows, View<float> out);
// Of what a norm gives, out · gain + bias, whose gradient is d_out (N, C): by out, and by the scale
// of each row, 1 / reciprocal_deviation.
struct StandardisedGradients {
  View<float> rows;   // (N, C)
  View<float> scale;  // (N)
};
void standardise_rows_backward(const StandardisedRows& rows, View<const float> gain,
                               View<const float> d_out, const StandardisedGradients& gradients);

// A norm whose deviation is taken to be a constant, so that it is linear in its rows: from the
// gradient of what it gives, d_out (N, C), d_x (N, C) += (d_out·gain − the mean of that row)
// · reciprocal_deviation; the mean only where the norm subtracts that of its rows.
enum class Centring { none, mean };
struct ConstantScaleNorm {
  View<const float> gain;                  // (C)
  View<const float> reciprocal_deviation;  // (N)
  Centring centring = Centring::none;
};
void constant_scale_norm_backward(const ConstantScaleNorm& norm, View<const float> d_out,
                                  View<float> d_x);

// out (N, C) = x · gain + bias, for x (N, C), gain (C), and bias (C), which may be absent.
void apply_gain(View<const float> x, const NormParameters<float>& parameters, View<float> out);

// Sines and cosines of positions 0, 1, … (Vaswani et al. 2017, section 3.5): angle t / 10000^(2i/C)
// for sine (T, ⌈C/2⌉) and cosine (T, ⌊C/2⌋), which have C columns together.
void sinusoids(View<float> sine, View<float> cosine);

// cosine and sine (N, P) of the angles position · frequency, times the magnitude.
struct RotaryAngles {
  std::span<const std::int64_t> positions;  // (N)
  View<const double> frequencies;           // (F, P)
  std::span<const std::int32_t> rows{};     // (N), of the frequencies; empty: the first
  double magnitude = 1;
};
void rotary_angles(const RotaryAngles& angles, View<float> cosine, View<float> sine);

// Elements [begin, end) of a matrix (N, C), row by row, as deviation · normal deviates. Row n has
// the stream first_stream + n: a part of a matrix has the numbers that it has in the whole.
struct NormalDeviates {
  std::uint64_t seed = 0;
  std::uint64_t first_stream = 0;
  float deviation = 1.0F;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
void fill_normal(View<float> matrix, const NormalDeviates& deviates);

// Writes 0 to an element of each page of a matrix of zeros (N, C), contiguous. Where a machine has
// several memories, a page lies near the thread that first writes to it: each thread takes the rows
// that linear_forward() gives it for a single row of input, when reading takes the time.
void touch_pages(View<float> matrix);

// The first weight that is not finite in a format: rounded itself, or as the largest of its group,
// whose scale is rounded.
std::optional<float> find_not_finite(std::span<const float> weights, WeightFormat format);

// losses (N) = normaliser − target logit, from the sums over all pieces of a vocabulary of V words,
// as cross_entropy_piece_forward() left them, and smoothed ones; 0 for ignored targets.
void cross_entropy_piece_losses(const VocabularySums<float>& sums, std::int64_t vocabulary,
                                View<const std::int32_t> targets, View<float> losses,
                                const LabelSmoothing<float>& smoothing = {});

}  // namespace heed::kernels
