#include "kernels/cpu/scratch.h"

#include <array>

#include "tensor/tensor.h"

namespace heed::kernels {

float* scratch(Scratch use, std::size_t count) {
  thread_local std::array<Tensor<float>, 3> buffers;
  Tensor<float>& buffer = buffers[static_cast<std::size_t>(use)];
  if (static_cast<std::size_t>(buffer.size()) < count) {
    buffer = Tensor<float>();  // released before the larger one is taken
    buffer = Tensor<float>(Shape{static_cast<std::int64_t>(count)});
  }
  return buffer.data();
}

}  // namespace heed::kernels
