#include "kernels/packed_weight.h"

#include <algorithm>

#include "base/threads.h"
#include "kernels/cpu/product_kernels.h"

namespace heed::kernels {

PackedWeight::PackedWeight(View<const float> weight)
    : kernels_(std::make_unique<ProductKernels>(product_kernels(Precision::f32))),
      inputs_(weight.extent(1)),
      data_(Shape{bytes_needed(weight.extent(0), weight.extent(1))}) {
  const std::int64_t outputs = weight.extent(0), width = kernels_->columns;
  const std::int64_t depth = kernels_->block_depth(inputs_, kernels_->inner_unit);
  const ProductOperand operand{.data = weight.data(), .stride = inputs_, .transposed = true};
  parallel_ranges((outputs + width - 1) / width, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t first = index * width, count = std::min(width, outputs - first);
      std::byte* const to = data_.data() + index * kernels_->panel_bytes(width, inputs_);
      for (std::int64_t k = 0; k < inputs_; k += depth) {
        kernels_->pack_b(
            operand,
            {.first = first, .count = count, .k = k, .inner = std::min(depth, inputs_ - k)},
            to + kernels_->panel_bytes(width, k));
      }
    }
  });
}

PackedWeight::PackedWeight(PackedWeight&&) noexcept = default;
PackedWeight& PackedWeight::operator=(PackedWeight&&) noexcept = default;
PackedWeight::~PackedWeight() = default;

std::int64_t PackedWeight::bytes_needed(std::int64_t outputs, std::int64_t inputs) {
  const ProductKernels kernels = product_kernels(Precision::f32);
  const std::int64_t panels = (outputs + kernels.columns - 1) / kernels.columns;
  return panels * kernels.panel_bytes(kernels.columns, inputs);
}

bool PackedWeight::suits(const ProductKernels& kernels) const {
  return kernels.pack_b == kernels_->pack_b;
}

const std::byte* PackedWeight::panel(std::int64_t output, std::int64_t k) const {
  const std::int64_t width = kernels_->columns;
  return data_.data() + output / width * kernels_->panel_bytes(width, inputs_) +
         kernels_->panel_bytes(width, k);
}

}  // namespace heed::kernels
