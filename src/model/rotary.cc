#include "model/rotary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/error.h"
#include "kernels/elements.h"

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
  double low = channel_of(scaling.fast_rotations), high = channel_of(scaling.slow_rotations);
  if (scaling.whole_channels) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, channels - 1);
  if (high == low) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= divided / scaling.factor + (1 - divided);
  }
}

// The base by which a text of `length` tokens turns ("dynamic NTK").
double dynamic_base(const RotarySpecification& rotary, std::int64_t channels, std::int64_t length) {
  const RotaryScaling& scaling = rotary.scaling;
  if (length <= scaling.original_context) return rotary.base;
  const auto rotating = static_cast<double>(channels);
  const double growth =
      scaling.factor * static_cast<double>(length) / static_cast<double>(scaling.original_context) -
      (scaling.factor - 1);
  return rotary.base * std::pow(growth, rotating / (rotating - 2));
}

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// yarn's 0.1·s·ln(factor) + 1.
double magnitude_of(double factor, double share) {
  return factor <= 1 ? 1 : 0.1 * share * std::log(factor) + 1;
}

}  // namespace

std::vector<double> rotary_frequencies(const AttentionSpecification& attention,
                                       std::int64_t text_length) {
  const RotarySpecification& rotary = attention.rotary;
  const std::int64_t channels = attention.rotary_channels();
  std::vector<double> frequencies(static_cast<std::size_t>(channels / 2));
  const double base = rotary.scaling.kind == RotaryScalingKind::dynamic
                          ? dynamic_base(rotary, channels, text_length)
                          : rotary.base;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(channels));
  }
  const RotaryScaling& scaling = rotary.scaling;
  if (scaling.kind == RotaryScalingKind::linear) {
    for (double& frequency : frequencies) frequency /= scaling.factor;
  } else if (scaling.kind == RotaryScalingKind::llama3) {
    for (double& frequency : frequencies) frequency = scaled_as_llama3(frequency, scaling);
  } else if (scaling.kind == RotaryScalingKind::yarn) {
    scale_as_yarn(frequencies, rotary);
  } else if (scaling.kind == RotaryScalingKind::longrope) {
    const std::vector<double>& factors =
        text_length > scaling.original_context ? scaling.long_factors : scaling.short_factors;
    for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= factors[i];
  }
  return frequencies;
}

double rotary_magnitude(const RotarySpecification& rotary) {
  const RotaryScaling& scaling = rotary.scaling;
  const bool is_longrope = scaling.kind == RotaryScalingKind::longrope;
  if (!is_longrope && scaling.kind != RotaryScalingKind::yarn) return 1;
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  if (is_longrope) {
    return scaling.factor <= 1
               ? 1
               : std::sqrt(1 + std::log(scaling.factor) /
                                   std::log(static_cast<double>(scaling.original_context)));
  }
  if (scaling.magnitude > 0 && scaling.magnitude_all > 0) {
    return magnitude_of(scaling.factor, scaling.magnitude) /
           magnitude_of(scaling.factor, scaling.magnitude_all);
  }
  return magnitude_of(scaling.factor, 1);
}

Rotation rotation_of(const AttentionSpecification& attention, const RotatedNumber& number,
                     std::int64_t text_length) {
  const std::int64_t channels = attention.rotary_channels(), j = number.j;
  if (attention.positions != PositionKind::rotary || j >= channels) return {};
  AttentionSpecification own = attention;
  own.rotary = attention.rotary_of(number.layer);
  const bool halves = own.rotary.pairing == RotaryPairing::halves;
  const std::int64_t pair = halves ? j % (channels / 2) : j / 2;
  const bool is_first = halves ? j < channels / 2 : j % 2 == 0;
  const std::int64_t distance = halves ? channels / 2 : 1;
  const double angle = static_cast<double>(number.position) *
                       rotary_frequencies(own, text_length)[static_cast<std::size_t>(pair)];
  const double magnitude = rotary_magnitude(own.rotary);
  return {.cosine = magnitude * std::cos(angle),
          .sine = magnitude * std::sin(angle) * (is_first ? -1 : 1),
          .partner = is_first ? j + distance : j - distance};
}

RotaryRows::RotaryRows(const AttentionSpecification& attention,
                       std::span<const std::int64_t> positions,
                       std::span<const std::int64_t> text_lengths, Device device,
                       std::int64_t repetitions)
    : rows_(std::ssize(positions)) {
  if (attention.positions != PositionKind::rotary) return;
  pairing_ = attention.rotary.pairing;
  std::vector<std::int64_t> all_positions;
  if (repetitions > 1) {
    all_positions.reserve(static_cast<std::size_t>(repetitions * rows_));
    for (std::int64_t repetition = 0; repetition < repetitions; ++repetition) {
      for (const std::int64_t position : positions) all_positions.push_back(position + repetition);
    }
    positions = all_positions;
  }
  all_ = angles_of(attention, positions, text_lengths, device);
  if (!attention.has_local_rotary()) return;
  AttentionSpecification local = attention;
  for (std::size_t layer = 0; layer < attention.mask.windows.size(); ++layer) {
    is_local_.push_back(attention.mask.windows[layer] > 0);
    if (is_local_.back()) local.rotary = attention.rotary_of(static_cast<std::int64_t>(layer));
  }
  local_ = angles_of(local, positions, text_lengths, device);
}

RotaryRows::Angles RotaryRows::angles_of(const AttentionSpecification& attention,
                                         std::span<const std::int64_t> positions,
                                         std::span<const std::int64_t> text_lengths,
                                         Device device) {
  const bool by_length = turns_by_length(attention);
  check(!by_length || text_lengths.size() == positions.size(), "every row is of a text");
  std::vector<double> frequencies;          // (lengths of texts, R/2)
  std::vector<std::int32_t> rows_of_texts;  // (N), of the frequencies
  if (by_length) {
    std::map<std::int64_t, std::int32_t> row_of_length;
    for (const std::int64_t length : text_lengths) {
      const auto [row, is_new] =
          row_of_length.try_emplace(length, static_cast<std::int32_t>(row_of_length.size()));
      if (is_new) append(frequencies, rotary_frequencies(attention, length));
      rows_of_texts.push_back(row->second);
    }
  } else {
    frequencies = rotary_frequencies(attention);
  }
  const std::int64_t rows = std::ssize(positions), pairs = attention.rotary_channels() / 2;
  Angles angles{.cosine = Tensor<float>(Shape{rows, pairs}),
                .sine = Tensor<float>(Shape{rows, pairs})};
  kernels::rotary_angles(
      {.positions = positions,
       .frequencies = {frequencies.data(), {std::ssize(frequencies) / pairs, pairs}},
       .rows = rows_of_texts,
       .magnitude = rotary_magnitude(attention.rotary)},
      angles.cosine, angles.sine);
  if (device.is_cpu()) return angles;
  const auto table = [&] {
    const Shape shape = angles.cosine.shape();
    const auto bytes = static_cast<std::size_t>(shape.size()) * sizeof(float);
    return Tensor<float>(allocate_uncleared(bytes, device), shape);
  };
  Angles there{.cosine = table(), .sine = table()};
  kernels::copy(angles.cosine, there.cosine);
  kernels::copy(angles.sine, there.sine);
  return there;
}

kernels::RotaryTable<float> RotaryRows::table(std::int64_t layer) const {
  const bool is_local = !is_local_.empty() && is_local_[static_cast<std::size_t>(layer)];
  const Angles& angles = is_local ? local_ : all_;
  if (!angles.cosine.present()) return {.cosine = {}, .sine = {}, .pairing = pairing_};
  return {.cosine = angles.cosine.view().slice(0, 0, rows_),
          .sine = angles.sine.view().slice(0, 0, rows_),
          .pairing = pairing_};
}

}  // namespace heed
