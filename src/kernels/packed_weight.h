// Weights of linear layers in the very order in which products of f32 read them, for models that
// are run again and again: without, every product puts them into that order anew. Takes one to one
// and a half times the memory of the weights, beside them, and changes no bit of any result.
#pragma once

#include <cstdint>
#include <memory>

#include "tensor/tensor.h"

namespace heed::kernels {

struct ProductKernels;

class PackedWeight {
 public:
  // From weight (O, I), for the instruction set in use.
  explicit PackedWeight(View<const float> weight);
  PackedWeight(PackedWeight&&) noexcept;
  PackedWeight& operator=(PackedWeight&&) noexcept;
  ~PackedWeight();

  // Bytes that weights (O, I) take, for the instruction set in use.
  static std::int64_t bytes_needed(std::int64_t outputs, std::int64_t inputs);

  // Whether these kernels read it: those of the instruction set that it was packed for.
  bool suits(const ProductKernels& kernels) const;
  // Inputs from k on, the beginning of a block, of the outputs of one panel, `output` the first.
  const std::byte* panel(std::int64_t output, std::int64_t k) const;

 private:
  std::unique_ptr<const ProductKernels> kernels_;
  std::int64_t inputs_;
  Tensor<std::byte> data_;  // panels, (inputs, outputs of a panel) each, inputs block by block
};

}  // namespace heed::kernels
