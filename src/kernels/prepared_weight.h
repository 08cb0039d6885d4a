// Quantised weights of linear layers, packed once, for inference. Decoding reads every weight for
// every token, so its time is the size of the weights divided by the memory bandwidth.
//
// All formats consist of consecutive panels of `panel_outputs` outputs, which are read
// sequentially. Inputs are padded with zeros to a multiple of `input_unit`, outputs to whole
// panels.
//   bf16   (inputs/2, 32, 2)
//   int8   (inputs/4, 32, 4) unsigned bytes, weight = scale · (byte − 128)
//   int4   (inputs/8, 32, 4) bytes of which the low halves hold inputs 0 to 3 of eight and the high
//          halves 4 to 7, weight = scale · (half − 8)
// Integers are symmetric in groups of 32 inputs of one output: scale = largest magnitude / 127 or
// / 7, in bf16. The scales of all panels, (inputs/32, 32) each, follow the last panel, so that
// the integers are one stream and the scales another.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/operands.h"
#include "tensor/tensor.h"

namespace heed::kernels {

enum class WeightFormat : std::uint8_t { f32, bf16, int8, int4 };

std::string_view weight_format_name(WeightFormat format);  // "f32", "bf16", "int8", "int4"
// Throws Error{invalid_argument} for another name.
WeightFormat parse_weight_format(std::string_view name);

class PreparedWeight {
 public:
  static constexpr std::int64_t panel_outputs = 32;
  static constexpr std::int64_t input_unit = 32;
  static constexpr std::int64_t group = 32;  // inputs that share a scale

  // From weight (O, I). Throws Error{invalid_argument} for f32, which needs no preparation, and for
  // weights that are not finite.
  PreparedWeight(View<const float> weight, WeightFormat format);

  WeightFormat format() const { return format_; }
  std::int64_t outputs() const { return outputs_; }  // O
  std::int64_t inputs() const { return inputs_; }    // I
  std::int64_t padded_inputs() const { return padded_inputs_; }
  std::int64_t panels() const { return (outputs_ + panel_outputs - 1) / panel_outputs; }
  std::int64_t panel_bytes() const { return panel_bytes_; }  // without its scales
  std::int64_t bytes() const { return panels() * (panel_bytes_ + scale_bytes_); }
  const std::byte* panel(std::int64_t index) const { return data_.data() + index * panel_bytes_; }
  // Those of the panel; meaningless in bf16, which has none.
  const std::byte* scales(std::int64_t index) const { return data_.data() + scales_at(index); }

  // The weight that is read after this one, borrowed: threads that wait for others fetch the
  // beginning of their part of it. Null: none is known.
  const PreparedWeight* next() const { return next_; }
  void set_next(const PreparedWeight* next) { next_ = next; }

  // The dequantised weights (O, I), and one row (I) of them.
  Tensor<float> restored() const;
  std::vector<float> restored_row(std::int64_t output) const;

 private:
  std::int64_t scales_at(std::int64_t index) const {
    return panels() * panel_bytes_ + index * scale_bytes_;
  }

  WeightFormat format_;
  std::int64_t outputs_;
  std::int64_t inputs_;
  std::int64_t padded_inputs_;
  std::int64_t panel_bytes_;
  std::int64_t scale_bytes_;  // of a panel
  Tensor<std::byte> data_;
  const PreparedWeight* next_ = nullptr;
};

// out (N, O) = x (N, I)·weightᵀ + bias (O; absent: zero). Rows of a sequence of a few `positions`
// (0: N; decoding_step: 1) read the panels directly; those of a longer one use a matrix product,
// unless multiplies_long_rows_in_integers(). Where they read panels, integer formats quantise x to
// int8 in groups of 32, which moves an output by at most Σ over groups of max|x| / 254 · Σ|weight|.
// A row has the same bits beside any other rows.
void prepared_linear_forward(View<const float> x, const PreparedWeight& weight,
                             View<const float> bias, View<float> out, std::int64_t positions = 0);

// Whether rows of long sequences, as those of short ones, are multiplied by weights of this format
// in integers, unless refused (all rows but those of steps of decoding are then multiplied in f32):
// where the instruction set in use does so faster than in f32. Dot products of bytes (VNNI of
// AVX-512, AVX-VNNI) are faster for int8 and int4, products of bytes that are summed in pairs
// (AVX2) for int4, whose groups they sum without widening.
bool multiplies_long_rows_in_integers(WeightFormat format);
void allow_integers_for_long_rows(bool allowed);  // at first they are
bool integers_are_allowed();

// The matrix (O, I) that linear_forward() multiplies by, in f32: the weights themselves (borrowed),
// or dequantised prepared weights. Explanations and backward passes use this matrix.
class MultipliedWeight {
 public:
  explicit MultipliedWeight(const LinearParameters<float>& linear);

  View<const float> view() const { return linear_.prepared ? restored_.view() : linear_.weight; }

 private:
  const LinearParameters<float>& linear_;
  Tensor<float> restored_;
};

// One row (I) of it, without the others.
std::vector<float> multiplied_row(const LinearParameters<float>& linear, std::int64_t output);

}  // namespace heed::kernels
