#include "model/pass.h"

#include "base/random.h"
#include "kernels/dropout_hash.h"
#include "kernels/kernels.h"

namespace heed {

kernels::Dropout DropoutPlan::at(DropoutPoint point, std::int64_t layer, float rate,
                                 std::int64_t rows) const {
  if (!active || rate <= 0.0F) return {};
  const std::uint64_t stage = static_cast<std::uint64_t>(point) |
                              (static_cast<std::uint64_t>(layer + 1) << 8) |
                              (static_cast<std::uint64_t>(site) << 28);
  const auto mixed =
      philox({static_cast<std::uint32_t>(pass), static_cast<std::uint32_t>(pass >> 32),
              static_cast<std::uint32_t>(stage), 0},
             {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t key = (static_cast<std::uint64_t>(mixed[0]) << 32) | mixed[1];
  const bool is_pattern = point == DropoutPoint::pattern || point == DropoutPoint::cross_pattern;
  const std::int64_t row_of_ragged = is_pattern ? 0 : first_row;  // sequence by sequence: 0
  return kernels::from_row({.rate = rate, .key = key},
                           first_row < 0 ? first_sequence * rows : row_of_ragged);
}

bool Pass::drop(DropoutPoint point, std::int64_t layer, float rate, View<const float> x,
                View<float> out) const {
  const std::int64_t text = sequence_positions();
  const kernels::Dropout all = dropout.at(point, layer, rate, text);
  if (all.rate <= 0) return false;
  if (ring == nullptr) {
    kernels::dropout(x, all, out);
    return true;
  }
  const std::int64_t whole = sequences.count() / RingPlace::chunks;
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const Sequence chunk = sequences[b];
    kernels::dropout(x.slice(0, chunk.row_begin, chunk.row_end),
                     kernels::from_row(all, b % whole * text + chunk.first_position),
                     out.slice(0, chunk.row_begin, chunk.row_end));
  }
  return true;
}

bool gradient_is_editable(PointKind kind) {
  switch (kind) {
    case PointKind::residual_pre:
    case PointKind::attention_in:
    case PointKind::query_input:
    case PointKind::key_input:
    case PointKind::value_input:
    case PointKind::query:
    case PointKind::key:
    case PointKind::value:
    case PointKind::rotated_query:
    case PointKind::rotated_key:
    case PointKind::mixed_values:
    case PointKind::attention_out:
    case PointKind::residual_mid:
    case PointKind::cross_query:
    case PointKind::cross_key:
    case PointKind::cross_value:
    case PointKind::cross_mixed_values:
    case PointKind::cross_attention_out:
    case PointKind::residual_cross:
    case PointKind::feed_forward_in:
    case PointKind::neurons_pre:
    case PointKind::neurons_linear:
    case PointKind::neurons_post:
    case PointKind::feed_forward_out:
    case PointKind::residual_post:
    case PointKind::normalized_residual_post:
    case PointKind::unembedding_in: return true;
    default: return false;
  }
}

bool backward_sees_edit(PointKind kind) {
  return gradient_is_editable(kind) || kind == PointKind::embedding || kind == PointKind::position;
}

kernels::Dropout of_sequence(const kernels::Dropout& dropout, std::int64_t b) {
  if (dropout.rate <= 0.0F) return dropout;
  const auto mixed = philox(
      {static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32), 1, 0},
      {static_cast<std::uint32_t>(dropout.key), static_cast<std::uint32_t>(dropout.key >> 32)});
  return {.rate = dropout.rate, .key = (static_cast<std::uint64_t>(mixed[0]) << 32) | mixed[1]};
}

}  // namespace heed
