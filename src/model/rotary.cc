#include "model/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/threads.h"

namespace heed {
namespace {

constexpr double two_pi = 2 * std::numbers::pi;

// Low frequencies are divided by the factor, high ones kept, and those between interpolated.
double scaled_as_llama3(double frequency, const RotaryScaling& scaling) {
  const auto original = static_cast<double>(scaling.original_context);
  const double wavelength = two_pi / frequency;
  if (wavelength > original / scaling.low_frequency_factor) return frequency / scaling.factor;
  if (wavelength < original / scaling.high_frequency_factor) return frequency;
  const double kept = (original / wavelength - scaling.low_frequency_factor) /
                      (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

// Pairs that turn more than `fast_rotations` times in the original context keep their frequency,
// those that turn less than `slow_rotations` times are divided by the factor.
void scale_as_yarn(std::vector<double>& frequencies, const RotarySpecification& rotary) {
  const RotaryScaling& scaling = rotary.scaling;
  const auto channels = static_cast<double>(2 * frequencies.size());
  // The channel that turns so many times.
  const auto channel_of = [&](double rotations) {
    return channels *
           std::log(static_cast<double>(scaling.original_context) / (rotations * two_pi)) /
           (2 * std::log(rotary.base));
  };
  const double low = std::max(std::floor(channel_of(scaling.fast_rotations)), 0.0);
  double high = std::min(std::ceil(channel_of(scaling.slow_rotations)), channels - 1);
  if (high == low) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= divided / scaling.factor + (1 - divided);
  }
}

}  // namespace

std::vector<double> rotary_frequencies(const AttentionSpecification& attention) {
  const RotarySpecification& rotary = attention.rotary;
  const std::int64_t channels = attention.rotary_channels();
  std::vector<double> frequencies(static_cast<std::size_t>(channels / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] =
        std::pow(rotary.base, -2.0 * static_cast<double>(i) / static_cast<double>(channels));
  }
  const RotaryScaling& scaling = rotary.scaling;
  if (scaling.kind == RotaryScalingKind::linear) {
    for (double& frequency : frequencies) frequency /= scaling.factor;
  } else if (scaling.kind == RotaryScalingKind::llama3) {
    for (double& frequency : frequencies) frequency = scaled_as_llama3(frequency, scaling);
  } else if (scaling.kind == RotaryScalingKind::yarn) {
    scale_as_yarn(frequencies, rotary);
  }
  return frequencies;
}

double rotary_magnitude(const RotarySpecification& rotary) {
  const RotaryScaling& scaling = rotary.scaling;
  if (scaling.kind != RotaryScalingKind::yarn) return 1;
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  return scaling.factor <= 1 ? 1 : 0.1 * std::log(scaling.factor) + 1;
}

Rotation rotation_of(const AttentionSpecification& attention, std::int64_t position,
                     std::int64_t j) {
  const std::int64_t channels = attention.rotary_channels();
  if (attention.positions != PositionKind::rotary || j >= channels) return {};
  const bool halves = attention.rotary.pairing == RotaryPairing::halves;
  const std::int64_t pair = halves ? j % (channels / 2) : j / 2;
  const bool is_first = halves ? j < channels / 2 : j % 2 == 0;
  const std::int64_t distance = halves ? channels / 2 : 1;
  const double angle =
      static_cast<double>(position) * rotary_frequencies(attention)[static_cast<std::size_t>(pair)];
  const double magnitude = rotary_magnitude(attention.rotary);
  return {.cosine = magnitude * std::cos(angle),
          .sine = magnitude * std::sin(angle) * (is_first ? -1 : 1),
          .partner = is_first ? j + distance : j - distance};
}

RotaryRows::RotaryRows(const AttentionSpecification& attention,
                       std::span<const std::int64_t> positions) {
  if (attention.positions != PositionKind::rotary) return;
  const std::vector<double> frequencies = rotary_frequencies(attention);
  const double magnitude = rotary_magnitude(attention.rotary);
  const auto rows = std::ssize(positions), pairs = std::ssize(frequencies);
  pairing_ = attention.rotary.pairing;
  cosine_ = Tensor<float>(Shape{rows, pairs});
  sine_ = Tensor<float>(Shape{rows, pairs});
  parallel_ranges(rows, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto position = static_cast<double>(positions[static_cast<std::size_t>(row)]);
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle = position * frequencies[static_cast<std::size_t>(i)];
        cosine_[row * pairs + i] = static_cast<float>(magnitude * std::cos(angle));
        sine_[row * pairs + i] = static_cast<float>(magnitude * std::sin(angle));
      }
    }
  });
}

kernels::RotaryTable<float> RotaryRows::table(std::int64_t begin, std::int64_t end) const {
  return {.cosine = cosine_.view().slice(0, begin, end),
          .sine = sine_.view().slice(0, begin, end),
          .pairing = pairing_};
}

}  // namespace heed
