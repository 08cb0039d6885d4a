// The accelerator's memory that other libraries of the process share with heed, such as PyTorch.
// They launch on streams of their own, and allocate addresses that no function of tensor/device.h
// knows.
#pragma once

#include <cstddef>

#include "tensor/view.h"

namespace heed::kernels {

// Waits for all that this process launched on the opened accelerator, by whatever library.
void wait_for_all_streams();

// to = from, byte for byte, by a kernel: `from` is memory of the opened accelerator that another
// library may have allocated, `to` is heed's own there. Both may have any strides.
void copy_shared(View<const std::byte> from, View<std::byte> to);

}  // namespace heed::kernels
