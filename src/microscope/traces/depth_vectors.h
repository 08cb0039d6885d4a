// The vector of one position at several depths.
#pragma once

#include <cstdint>

#include "microscope/traces/capture.h"
#include "tensor/tensor.h"

namespace heed {

// (points, C), of the points (1, T, C) that were captured, in their order.
Tensor<float> vectors_at(const Capture& capture, std::int64_t position);

}  // namespace heed
