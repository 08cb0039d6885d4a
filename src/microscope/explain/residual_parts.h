// Decomposition of the residual stream into the contributions written to it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "microscope/traces/recorded_pass.h"
#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

enum class ResidualUnit {
  component,  // "embed", "pos_embed", "0_attn_out", "0_mlp_out", …
  head,       // attention layers as "L0H0", …, and their bias as "0_attn_bias"
};

struct ResidualPart {
  std::string name;   // as TransformerLens labels it
  double length = 0;  // ‖part‖
  double cosine = 0;  // with the last residual stream
  double share = 0;   // part · stream / ‖stream‖²; shares sum to one
};

struct ResidualParts {
  std::int64_t position = 0;
  // In the order of the pass; with quantised weights, "rounding" last.
  std::vector<ResidualPart> parts;
  Tensor<float> vectors;      // (parts, C), in the same order; their sum is the stream
  std::vector<float> stream;  // (C): blocks.L-1.hook_resid_post at the position
};

// At `position` of a text (−1: the last) (TransformerLens: decompose_resid, stack_head_results).
// Throws what trace() throws, and Error{invalid_argument} for a position that does not exist.
ResidualParts decompose_residual(const Transformer& model, std::span<const std::int32_t> tokens,
                                 ResidualUnit unit, std::int64_t position = -1);

// The same for a recorded pass with its interventions: what an intervention adds to the stream, or
// to a sum of heads, is a part of its own, such as "2_resid_mid_edit".
ResidualParts decompose_residual(const RecordedPass& pass, ResidualUnit unit,
                                 std::int64_t position = -1);

}  // namespace heed
