// What moves, fills, adds up and compares numbers. Memory is the limit, or the call is rare: plain
// loops, which the compiler vectorises without changing a bit.
#include "kernels/elements.h"
#include "kernels/backends.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/bf16.h"
#include "base/random.h"
#include "kernels/cpu/element_rows.h"
#include "kernels/element_checks.h"

namespace heed::kernels {
namespace {

template <class T>
void copy_elements(View<const T> from, View<T> to) {
  require_shape(to, from.shape(), "the copy");
  ElementRows<const T, T>(from, to).for_each(
      [](std::int64_t count, ElementRow<const T> source, ElementRow<T> target) {
        if (source.stride == 1 && target.stride == 1) {
          std::copy_n(source.data, count, target.data);
        } else {
          for_each_in_row(
              count, [](const T& x, T& y) { y = x; }, source, target);
        }
      });
}

float mean_of(const StandardisedRows& rows, std::int64_t row) {
  return rows.mean.present() ? rows.mean(row) : 0.0F;
}

// Whether a weight stays finite in a format.
bool is_finite_in(float weight, WeightFormat format) {
  const float integer = format == WeightFormat::int8   ? 127.0F
                        : format == WeightFormat::int4 ? 7.0F
                                                       : 1.0F;
  return std::isfinite(bf16_to_f32(f32_to_bf16(std::abs(weight) / integer)) * integer);
}

}  // namespace

void cpu::fill(View<float> x, float value) {
  for_each_element([value](float& element) { element = value; }, x);
}

void cpu::copy(View<const float> from, View<float> to) { copy_elements(from, to); }
void cpu::copy(View<const std::int32_t> from, View<std::int32_t> to) { copy_elements(from, to); }
void cpu::copy(View<const std::byte> from, View<std::byte> to) { copy_elements(from, to); }

void cpu::scale(View<float> x, float factor) {
  for_each_element([factor](float& element) { element *= factor; }, x);
}

void cpu::accumulate(View<const float> from, View<float> to, float factor) {
  require_shape(to, from.shape(), "the sum");
  if (factor == 1.0F) {
    return for_each_element([](const float& x, float& y) { y += x; }, from, to);
  }
  for_each_element([factor](const float& x, float& y) { y += factor * x; }, from, to);
}

void cpu::subtract(View<const float> x, View<const float> y, View<float> out) {
  require_shape(y, x.shape(), "y");
  require_shape(out, x.shape(), "out");
  for_each_element([](const float& a, const float& b, float& difference) { difference = a - b; }, x,
                   y, out);
}

void cpu::reciprocal(View<const float> x, View<float> out) {
  require_shape(out, x.shape(), "out");
  for_each_element([](const float& a, float& b) { b = 1.0F / a; }, x, out);
}

bool cpu::equal_bits(View<const float> x, View<const float> y) {
  require_shape(y, x.shape(), "y");
  return ElementRows<const float, const float>(x, y).all_of(
      [](std::int64_t count, ElementRow<const float> a, ElementRow<const float> b) {
        if (a.stride == 1 && b.stride == 1) {
          return std::memcmp(a.data, b.data, static_cast<std::size_t>(count) * sizeof(float)) == 0;
        }
        bool equal = true;
        for_each_in_row(
            count,
            [&equal](const float& p, const float& q) {
              equal &= std::bit_cast<std::uint32_t>(p) == std::bit_cast<std::uint32_t>(q);
            },
            a, b);
        return equal;
      });
}

double cpu::sum(View<const float> x, double start) {
  checks::rank(x, 1, "x");
  for (std::int64_t i = 0; i < x.extent(0); ++i) start += x(i);
  return start;
}

void cpu::gather_rows(View<const float> from, std::span<const std::int32_t> indices,
                      View<float> to) {
  checks::indexed_rows(from, indices, to);
  const std::int64_t columns = to.extent(1);
  if (columns == 0) return;
  parallel_ranges(
      to.extent(0), element_grain / columns + 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t n = begin; n < end; ++n) {
          const std::int64_t row = indices[static_cast<std::size_t>(n)];
          const ElementRow<const float> source{from.data() + row * from.stride(0), from.stride(1)};
          const ElementRow<float> target{to.data() + n * to.stride(0), to.stride(1)};
          for_each_in_row(
              columns, [](const float& x, float& y) { y = x; }, source, target);
        }
      });
}

// Threads own columns, not rows: a row met twice is summed by one thread, in order.
void cpu::scatter_add_rows(View<const float> from, std::span<const std::int32_t> indices,
                           View<float> to) {
  checks::indexed_rows(to, indices, from);
  const std::int64_t rows = from.extent(0), columns = from.extent(1);
  if (from.size() == 0) return;
  parallel_ranges(
      (columns + 15) / 16, element_grain / (16 * rows) + 1,
      [&](std::int64_t first, std::int64_t last) {
        const std::int64_t begin = first * 16, count = std::min(last * 16, columns) - begin;
        for (std::int64_t n = 0; n < rows; ++n) {
          const std::int64_t row = indices[static_cast<std::size_t>(n)];
          const ElementRow<const float> source{
              from.data() + n * from.stride(0) + begin * from.stride(1), from.stride(1)};
          const ElementRow<float> target{to.data() + row * to.stride(0) + begin * to.stride(1),
                                         to.stride(1)};
          for_each_in_row(
              count, [](const float& x, float& y) { y += x; }, source, target);
        }
      });
}

void cpu::softmax_rows(View<const float> scores, View<float> out) {
  checks::same_rows(scores, out, "scores", "out");
  const std::int64_t columns = scores.extent(1);
  if (columns == 0) return;
  parallel_ranges(scores.extent(0), element_grain / (4 * columns) + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t n = begin; n < end; ++n) {
                      float largest = scores(n, 0);
                      for (std::int64_t s = 1; s < columns; ++s) {
                        if (largest < scores(n, s)) largest = scores(n, s);
                      }
                      const bool is_masked = largest == -std::numeric_limits<float>::infinity();
                      double total = 0;
                      for (std::int64_t s = 0; s < columns; ++s) {
                        out(n, s) = is_masked ? 0.0F : std::exp(scores(n, s) - largest);
                        total += out(n, s);
                      }
                      if (is_masked) continue;
                      for (std::int64_t s = 0; s < columns; ++s) {
                        out(n, s) = static_cast<float>(out(n, s) / total);
                      }
                    }
                  });
}

void cpu::softmax_rows_backward(View<const float> pattern, View<float> gradient) {
  checks::same_rows(pattern, gradient, "pattern", "gradient");
  const std::int64_t columns = pattern.extent(1);
  if (columns == 0) return;
  parallel_ranges(pattern.extent(0), element_grain / columns + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t n = begin; n < end; ++n) {
                      double total = 0;
                      for (std::int64_t s = 0; s < columns; ++s) {
                        total += pattern(n, s) * gradient(n, s);
                      }
                      const auto subtracted = static_cast<float>(total);
                      for (std::int64_t s = 0; s < columns; ++s) {
                        gradient(n, s) = pattern(n, s) * (gradient(n, s) - subtracted);
                      }
                    }
                  });
}

void cpu::mix_rows(View<const float> pattern, View<const float> value, View<float> out) {
  checks::mixed_rows(pattern, value, out);
  const std::int64_t columns = value.extent(1);
  parallel_ranges(pattern.extent(0), element_grain / std::max<std::int64_t>(value.size(), 1) + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::vector<double> sums(static_cast<std::size_t>(columns));
                    for (std::int64_t n = begin; n < end; ++n) {
                      std::fill(sums.begin(), sums.end(), 0.0);
                      for (std::int64_t s = 0; s < pattern.extent(1); ++s) {
                        const double share = pattern(n, s);
                        if (share == 0) continue;
                        const float* const row = value.data() + s * value.stride(0);
                        for (std::int64_t d = 0; d < columns; ++d) {
                          sums[static_cast<std::size_t>(d)] += share * row[d * value.stride(1)];
                        }
                      }
                      for (std::int64_t d = 0; d < columns; ++d) {
                        out(n, d) = static_cast<float>(sums[static_cast<std::size_t>(d)]);
                      }
                    }
                  });
}

void cpu::standardise_rows(const StandardisedRows& rows, View<float> out) {
  checks::standardised_rows(rows.x, rows.mean, rows.reciprocal_deviation);
  checks::same_rows(rows.x, out, "x", "out");
  const std::int64_t columns = out.extent(1);
  for (std::int64_t n = 0; n < out.extent(0); ++n) {
    const float mean = mean_of(rows, n), factor = rows.reciprocal_deviation(n);
    for (std::int64_t c = 0; c < columns; ++c) out(n, c) = (rows.x(n, c) - mean) * factor;
  }
}

void cpu::standardise_rows_backward(const StandardisedRows& rows, View<const float> gain,
                                    View<const float> d_out,
                                    const StandardisedGradients& gradients) {
  checks::standardised_rows(rows.x, rows.mean, rows.reciprocal_deviation);
  checks::same_rows(rows.x, d_out, "x", "d_out");
  checks::same_rows(rows.x, gradients.rows, "x", "the gradient of rows");
  require_shape(gain, {rows.x.extent(1)}, "gain");
  require_shape(gradients.scale, {rows.x.extent(0)}, "the gradient of the scale");
  for (std::int64_t n = 0; n < d_out.extent(0); ++n) {
    // rows = centred / scale, so ∂rows/∂scale = −rows / scale
    const float mean = mean_of(rows, n), factor = rows.reciprocal_deviation(n);
    double total = 0;
    for (std::int64_t c = 0; c < d_out.extent(1); ++c) {
      const float gradient = d_out(n, c) * gain(c);
      total += gradient * (rows.x(n, c) - mean) * factor;
      gradients.rows(n, c) = gradient;
    }
    gradients.scale(n) = -factor * static_cast<float>(total);
  }
}

void cpu::constant_scale_norm_backward(const ConstantScaleNorm& norm, View<const float> d_out,
                                       View<float> d_x) {
  checks::same_rows(d_out, d_x, "d_out", "d_x");
  require_shape(norm.gain, {d_out.extent(1)}, "gain");
  require_shape(norm.reciprocal_deviation, {d_out.extent(0)}, "reciprocal_deviation");
  const std::int64_t channels = d_out.extent(1);
  for (std::int64_t n = 0; n < d_out.extent(0); ++n) {
    double sum = 0;
    if (norm.centring == Centring::mean) {
      for (std::int64_t c = 0; c < channels; ++c) sum += d_out(n, c) * norm.gain(c);
    }
    const float mean = static_cast<float>(sum / static_cast<double>(channels));
    const float factor = norm.reciprocal_deviation(n);
    for (std::int64_t c = 0; c < channels; ++c) {
      d_x(n, c) += (d_out(n, c) * norm.gain(c) - mean) * factor;
    }
  }
}

void cpu::apply_gain(View<const float> x, const NormParameters<float>& parameters,
                     View<float> out) {
  checks::same_rows(x, out, "x", "out");
  require_shape(parameters.gain, {x.extent(1)}, "gain");
  if (parameters.bias.present()) require_shape(parameters.bias, {x.extent(1)}, "bias");
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t c = 0; c < x.extent(1); ++c) {
      const float value = x(n, c) * parameters.gain(c);
      out(n, c) = parameters.bias.present() ? value + parameters.bias(c) : value;
    }
  }
}

void cpu::sinusoids(View<float> sine, View<float> cosine) {
  checks::sinusoids(sine, cosine);
  const auto channels = static_cast<double>(sine.extent(1) + cosine.extent(1));
  for (std::int64_t t = 0; t < sine.extent(0); ++t) {
    for (std::int64_t i = 0; i < sine.extent(1); ++i) {
      const double angle =
          static_cast<double>(t) / std::pow(10000.0, 2.0 * static_cast<double>(i) / channels);
      sine(t, i) = static_cast<float>(std::sin(angle));
      if (i < cosine.extent(1)) cosine(t, i) = static_cast<float>(std::cos(angle));
    }
  }
}

void cpu::rotary_angles(const RotaryAngles& angles, View<float> cosine, View<float> sine) {
  checks::rotary_angles(angles.positions, angles.frequencies, cosine, sine);
  require(angles.rows.empty() || angles.rows.size() == angles.positions.size(),
          ErrorCode::invalid_argument, "{} rows of frequencies for {} positions",
          angles.rows.size(), angles.positions.size());
  parallel_ranges(cosine.extent(0), 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const auto at = static_cast<std::size_t>(n);
      const auto position = static_cast<double>(angles.positions[at]);
      const std::int64_t row = angles.rows.empty() ? 0 : angles.rows[at];
      for (std::int64_t i = 0; i < cosine.extent(1); ++i) {
        const double angle = position * angles.frequencies(row, i);
        cosine(n, i) = static_cast<float>(angles.magnitude * std::cos(angle));
        sine(n, i) = static_cast<float>(angles.magnitude * std::sin(angle));
      }
    }
  });
}

void cpu::fill_normal(View<float> matrix, const NormalDeviates& deviates) {
  checks::rank(matrix, 2, "matrix");
  require(deviates.begin >= 0 && deviates.begin <= deviates.end && deviates.end <= matrix.size(),
          ErrorCode::invalid_argument, "elements {} to {} are outside of a matrix of {}",
          deviates.begin, deviates.end, matrix.size());
  if (deviates.begin == deviates.end) return;
  const std::int64_t columns = matrix.extent(1);
  const std::int64_t first = deviates.begin / columns;
  const std::int64_t last = (deviates.end + columns - 1) / columns;
  parallel_ranges(last - first, 16, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t row = first + from; row < first + to; ++row) {
      RandomStream random(deviates.seed, deviates.first_stream + static_cast<std::uint64_t>(row));
      for (std::int64_t c = 0; c < columns; ++c) {
        const float value = deviates.deviation * static_cast<float>(random.normal());
        const std::int64_t at = row * columns + c;
        if (at >= deviates.begin && at < deviates.end) matrix(row, c) = value;
      }
    }
  });
}

void cpu::touch_pages(View<float> matrix) {
  constexpr std::int64_t page = 4096 / sizeof(float);
  checks::rank(matrix, 2, "matrix");
  checks::contiguous(matrix, matrix.shape(), "matrix");
  const std::int64_t columns = matrix.extent(1);
  parallel_ranges(matrix.extent(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * columns; i < end * columns; i += page) matrix.data()[i] = 0;
  });
}

std::optional<float> cpu::find_not_finite(std::span<const float> weights, WeightFormat format) {
  constexpr float usual = 0x1p127F;  // below it, none grows to infinity
  std::atomic<bool> all_usual = true;
  parallel_ranges(std::ssize(weights), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    bool are_usual = true;  // without leaving the loop, so that it is vectorised
    for (std::int64_t i = begin; i < end; ++i) {
      are_usual &= std::abs(weights[static_cast<std::size_t>(i)]) < usual;
    }
    if (!are_usual) all_usual = false;
  });
  if (all_usual) return std::nullopt;
  const auto found =
      std::ranges::find_if_not(weights, [&](float weight) { return is_finite_in(weight, format); });
  return found == weights.end() ? std::nullopt : std::optional(*found);
}

void cpu::cross_entropy_piece_losses(const VocabularySums<float>& sums, std::int64_t vocabulary,
                                     View<const std::int32_t> targets, View<float> losses,
                                     const LabelSmoothing<float>& smoothing) {
  checks::piece_losses(sums, targets, losses, smoothing);
  for (std::int64_t n = 0; n < targets.extent(0); ++n) {
    const bool is_ignored = targets(n) == ignored_target;
    const float loss = is_ignored ? 0.0F : sums.normaliser(n) - sums.target_logit(n);
    float smoothed = loss;
    if (smoothing.rate > 0.0F && !is_ignored) {
      const float mean = sums.normaliser(n) - sums.logit_sum(n) / static_cast<float>(vocabulary);
      smoothed = (1.0F - smoothing.rate) * loss + smoothing.rate * mean;
    }
    losses(n) = loss;
    if (smoothing.losses.present()) smoothing.losses(n) = smoothed;
  }
}

}  // namespace heed::kernels
