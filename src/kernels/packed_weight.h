// f32 weights of linear layers, packed once in the order of the matrix product kernels. Otherwise
// every product packs them. Uses 1 to 1.5 times the memory of the weights in addition to them;
// results are bit-identical.
#pragma once

#include <cstdint>
#include <memory>

#include "tensor/tensor.h"

namespace heed::kernels {

struct ProductKernels;

class PackedWeight {
 public:
  // Packs weight (O, I) for the instruction set in use.
  explicit PackedWeight(View<const float> weight);
  PackedWeight(PackedWeight&&) noexcept;
  PackedWeight& operator=(PackedWeight&&) noexcept;
  ~PackedWeight();

  // Bytes of packed weights (O, I) for the instruction set in use.
  static std::int64_t bytes_needed(std::int64_t outputs, std::int64_t inputs);

  // Whether it was packed for the instruction set of these kernels.
  bool suits(const ProductKernels& kernels) const;
  // The panel of outputs from `output` on, at inputs from k on, the start of a block.
  const std::byte* panel(std::int64_t output, std::int64_t k) const;

 private:
  std::unique_ptr<const ProductKernels> kernels_;
  std::int64_t inputs_;
  Tensor<std::byte> data_;  // panels, (inputs, outputs of a panel) each, inputs block by block
};

}  // namespace heed::kernels
