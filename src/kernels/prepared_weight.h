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
//
// The formats of blocks, q8_0 to q6_k, have the integers and scales of GGUF's blocks of that name,
// in this order: nothing is rounded. Integers of four bits are as in int4, those of eight as in
// int8. In each group of 32 inputs, those of five and six bits have halves, as int4, then the bits
// above them, (32, 4) bytes of eight single bits or (2, 32, 4) bytes of four pairs; those of two
// and three bits have pairs, then single bits. Scales: kernels/cpu/quantised_format.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/operands.h"
#include "tensor/tensor.h"

namespace heed {
class SharedBytes;
}

namespace heed::kernels {

enum class WeightFormat : std::uint8_t {
  f32,
  bf16,
  int8,
  int4,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
};

std::string_view weight_format_name(WeightFormat format);  // "f32", "bf16", "int8", "q8_0", …
// Of the formats that weights are quantised to: f32, bf16, int8, int4. Throws
// Error{invalid_argument} for another name.
WeightFormat parse_weight_format(std::string_view name);

// Whether weights are integers times scales: all but f32 and bf16.
constexpr bool holds_integers(WeightFormat format) { return format >= WeightFormat::int8; }
// Whether weights come in blocks: q8_0 to q6_k.
constexpr bool holds_blocks(WeightFormat format) { return format >= WeightFormat::q8_0; }

// Numbers and bytes of a block of GGUF. The format holds blocks.
struct BlockSize {
  std::int64_t values;
  std::int64_t bytes;
};
BlockSize block_size(WeightFormat format);

// Of a prepared weight in a large matrix, with its part of the scales.
double bytes_per_weight(WeightFormat format);

// Rows of blocks, (O, I) weights, as GGUF stores them.
struct BlockMatrix {
  std::span<const std::byte> blocks;
  Shape shape;
  WeightFormat format;
  // Told of blocks that were copied, some rows at a time, by any thread; none: nobody.
  std::function<void(std::span<const std::byte> copied)> copied{};
};

// Memory that the panels of several weights share, one weight after another, so that huge pages
// hold parts of two where one ends: most matrices of a small model end within one.
class WeightMemory {
 public:
  // Room for weights whose rounded_bytes() have this sum.
  explicit WeightMemory(std::int64_t bytes);
  // Memory that other processes may use: all weights were written to it, and it is sealed, or they
  // are to be. Takes of it the rounded_bytes() of the same weights, in the same order.
  explicit WeightMemory(std::shared_ptr<SharedBytes> shared);
  static std::int64_t rounded_bytes(std::int64_t bytes);
  static constexpr int layout = 1;  // changes with the bytes that any format has in memory

  // Whether all weights are there.
  bool is_written() const { return is_written_; }
  // The next bytes, zeroed and aligned to 64; they keep the whole memory.
  std::shared_ptr<std::byte> take(std::int64_t bytes);

 private:
  std::shared_ptr<std::byte> memory_;
  std::int64_t size_;
  std::int64_t taken_ = 0;
  bool is_written_ = false;
};

class PreparedWeight {
 public:
  static constexpr std::int64_t panel_outputs = 32;
  static constexpr std::int64_t input_unit = 32;
  static constexpr std::int64_t group = 32;  // inputs that share a scale

  // From weight (O, I). Throws Error{invalid_argument} for f32, which needs no preparation, and for
  // weights that are not finite.
  PreparedWeight(View<const float> weight, WeightFormat format, WeightMemory* memory = nullptr);

  // From the blocks of a matrix, or of several that have the same inputs and whose outputs follow
  // each other, such as queries, keys and values. Where the format changes, whole panels must end.
  // Throws Error{invalid_argument} for scales that are not finite and for bytes that are not those
  // of the shape, Error{unsupported} for panels of two formats.
  explicit PreparedWeight(const BlockMatrix& matrix);
  explicit PreparedWeight(std::span<const BlockMatrix> parts, WeightMemory* memory = nullptr);

  // What a weight (O, I) takes of a shared memory; of several parts, no more than all of theirs.
  // Without one, each weight has its own.
  static std::int64_t bytes_of(const Shape& shape, WeightFormat format);

  // Consecutive panels of one format.
  struct Part {
    WeightFormat format;
    std::int64_t first_panel;
    std::int64_t panels;
    std::int64_t panel_bytes;  // without its scales
    std::int64_t scale_bytes;  // of a panel
    std::int64_t begin;        // of its panels, in bytes; the scales follow them

    std::int64_t bytes() const { return panels * (panel_bytes + scale_bytes); }
  };
  std::span<const Part> parts() const { return parts_; }
  const Part& part_of(std::int64_t panel) const {
    std::size_t part = 0;
    while (part + 1 < parts_.size() && panel >= parts_[part + 1].first_panel) ++part;
    return parts_[part];
  }

  WeightFormat format() const { return parts_.front().format; }  // of the first part
  std::int64_t outputs() const { return outputs_; }              // O
  std::int64_t inputs() const { return inputs_; }                // I
  std::int64_t padded_inputs() const { return padded_inputs_; }
  std::int64_t panels() const { return (outputs_ + panel_outputs - 1) / panel_outputs; }
  std::int64_t bytes() const { return bytes_; }
  const std::byte* panel(std::int64_t index) const {
    const Part& of = part_of(index);
    return data_.get() + of.begin + (index - of.first_panel) * of.panel_bytes;
  }
  // Those of the panel; meaningless in bf16, which has none.
  const std::byte* scales(std::int64_t index) const { return data_.get() + scales_at(index); }

  // A copy of all panels and scales in the opened accelerator's memory, panel 0 at its beginning,
  // made when it is first asked for. Copies of a weight share it. May be called by any thread.
  const std::byte* on_accelerator() const;

  // The weight that is read after this one, borrowed: threads that wait for others fetch the
  // beginning of their part of it. Null: none is known.
  const PreparedWeight* next() const { return next_; }
  void set_next(const PreparedWeight* next) { next_ = next; }

  // The dequantised weights (O, I), and one row (I) of them.
  Tensor<float> restored() const;
  std::vector<float> restored_row(std::int64_t output) const;

 private:
  struct AcceleratorCopy {
    std::mutex mutex;
    Memory bytes;
  };

  // One part, whose panels have places, but no memory.
  PreparedWeight(const Shape& shape, WeightFormat format);

  // A part after the others; its panels have no place yet.
  void add_part(WeightFormat format, std::int64_t panels);
  void place_parts();
  void allocate(WeightMemory* memory);
  void copy_rows(const BlockMatrix& part, std::int64_t first_output);
  std::byte* writable(const std::byte* place) { return data_.get() + (place - data_.get()); }
  std::int64_t scales_at(std::int64_t index) const {
    const Part& of = part_of(index);
    return of.begin + of.panels * of.panel_bytes + (index - of.first_panel) * of.scale_bytes;
  }

  std::vector<Part> parts_;
  std::int64_t outputs_ = 0;
  std::int64_t inputs_ = 0;
  std::int64_t padded_inputs_ = 0;
  std::int64_t bytes_ = 0;
  std::shared_ptr<std::byte> data_;
  std::shared_ptr<AcceleratorCopy> accelerator_copy_ = std::make_shared<AcceleratorCopy>();
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
// AVX-512, AVX-VNNI) are faster for all integers, products of bytes that are summed in pairs (AVX2)
// for those of less than eight bits, several of which they sum without widening.
bool multiplies_long_rows_in_integers(WeightFormat format);
void allow_integers_for_long_rows();  // at first they are
void refuse_integers_for_long_rows();
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
