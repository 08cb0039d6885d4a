// The preconditions of elements.h, shared by the fast path and the reference.
#pragma once

#include "kernels/operand_checks.h"

namespace heed::kernels::checks {

template <class T, class Out>
void indexed_rows(const View<T>& table, std::span<const std::int32_t> indices,
                  const View<Out>& rows) {
  rank(table, 2, "the table");
  require_shape(rows, Shape{static_cast<std::int64_t>(indices.size()), table.extent(1)}, "rows");
  for (const std::int32_t index : indices) {
    require(index >= 0 && index < table.extent(0), ErrorCode::invalid_argument,
            "row {} is outside of the {} rows of a table", index, table.extent(0));
  }
}

template <class T, class Out>
void same_rows(const View<T>& x, const View<Out>& out, std::string_view x_name,
               std::string_view out_name) {
  rank(x, 2, x_name);
  require_shape(out, x.shape(), out_name);
}

template <class T, class Out>
void mixed_rows(const View<T>& pattern, const View<T>& value, const View<Out>& out) {
  rank(pattern, 2, "pattern");
  rank(value, 2, "value");
  require_shape(value, {pattern.extent(1), value.extent(1)}, "value");
  require_shape(out, {pattern.extent(0), value.extent(1)}, "out");
}

template <class T>
void standardised_rows(const View<const T>& x, const View<const T>& mean,
                       const View<const T>& reciprocal_deviation) {
  rank(x, 2, "x");
  if (mean.present()) require_shape(mean, {x.extent(0)}, "mean");
  require_shape(reciprocal_deviation, {x.extent(0)}, "reciprocal_deviation");
}

template <class T>
void sinusoids(const View<T>& sine, const View<T>& cosine) {
  rank(sine, 2, "sine");
  const std::int64_t channels = sine.extent(1) + cosine.extent(1);
  require_shape(cosine, {sine.extent(0), channels / 2}, "cosine");
}

template <class T>
void rotary_angles(std::span<const std::int64_t> positions, const View<const double>& frequencies,
                   const View<T>& cosine, const View<T>& sine) {
  rank(frequencies, 2, "frequencies");
  const Shape shape{static_cast<std::int64_t>(positions.size()), frequencies.extent(1)};
  require_shape(cosine, shape, "cosine");
  require_shape(sine, shape, "sine");
}

template <class T>
void piece_losses(const VocabularySums<T>& sums, const View<const std::int32_t>& targets,
                  const View<T>& losses, const LabelSmoothing<T>& smoothing) {
  rank(targets, 1, "targets");
  require_shape(losses, targets.shape(), "losses");
  require_shape(sums.normaliser, targets.shape(), "normaliser");
  require_shape(sums.target_logit, targets.shape(), "target_logit");
  require(smoothing.rate == T(0) || sums.logit_sum.present(), ErrorCode::invalid_argument,
          "losses smoothed by {} need the sum of the logits", smoothing.rate);
  if (smoothing.losses.present()) {
    require_shape(smoothing.losses, targets.shape(), "smoothed losses");
  }
}

}  // namespace heed::kernels::checks
