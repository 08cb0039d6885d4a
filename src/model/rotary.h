// Rotary positions: how far each pair of channels of a query or key turns at a position.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "model/architecture.h"
#include "tensor/tensor.h"

namespace heed {

// The angle by which each of the R/2 pairs turns from a position to the next, in radians:
// base^(−2i/R), changed as the scaling of the description says (linear: Chen et al. 2023; llama3:
// Meta's LLaMA 3.1; yarn: Peng et al. 2023). A dynamic scaling changes nothing in texts of up to
// the context of pretraining, O; those of N > O tokens have the base b·(f·N/O − f + 1)^(R/(R − 2)).
// longrope (Ding et al. 2024) divides by its short factors in texts of up to O tokens, and by its
// long ones in others.
std::vector<double> rotary_frequencies(const AttentionSpecification& attention,
                                       std::int64_t text_length = 0);

// By which yarn and longrope scale sines and cosines, hence queries and keys; 1 for other scalings.
double rotary_magnitude(const RotarySpecification& rotary);

// How number j of a query or key turns at a position: r_j = cosine·x_j + sine·x_partner. Numbers
// that do not rotate have no partner, −1.
struct Rotation {
  double cosine = 1;
  double sine = 0;
  std::int64_t partner = -1;
};
struct RotatedNumber {
  std::int64_t layer;
  std::int64_t position;
  std::int64_t j;
};
Rotation rotation_of(const AttentionSpecification& attention, const RotatedNumber& number,
                     std::int64_t text_length);

// Whether frequencies depend on the length of a text.
inline bool turns_by_length(const AttentionSpecification& attention) {
  return attention.positions == PositionKind::rotary &&
         (attention.rotary.scaling.kind == RotaryScalingKind::dynamic ||
          attention.rotary.scaling.kind == RotaryScalingKind::longrope);
}

// Cosines and sines of the positions of some rows; empty unless positions are rotary.
class RotaryRows {
 public:
  RotaryRows() = default;
  // Of the positions of rows (N), in texts of these lengths (N): empty where no frequency depends
  // on them. Behind the angles lie those of the positions that follow, for each further repetition
  // of a recorded pass; no frequency may depend on lengths then.
  RotaryRows(const AttentionSpecification& attention, std::span<const std::int64_t> positions,
             std::span<const std::int64_t> text_lengths, Device device = {},
             std::int64_t repetitions = 1);

  bool present() const { return all_.cosine.present(); }
  // Of a layer.
  kernels::RotaryTable<float> table(std::int64_t layer) const;

 private:
  struct Angles {
    Tensor<float> cosine;  // (repetitions, N, R/2)
    Tensor<float> sine;    // the same
  };
  static Angles angles_of(const AttentionSpecification& attention,
                          std::span<const std::int64_t> positions,
                          std::span<const std::int64_t> text_lengths, Device device);

  Angles all_;
  Angles local_;                // of layers with a window, where these have a base of their own
  std::vector<bool> is_local_;  // (L), where there is such a base
  std::int64_t rows_ = 0;       // N
  RotaryPairing pairing_ = RotaryPairing::halves;
};

}  // namespace heed
