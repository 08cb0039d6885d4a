// heed's own arrays as those of the public interface.
#pragma once

#include "heed/array.h"
#include "heed/trace.h"
#include "tensor/tensor.h"

namespace heed {

// Takes over the tensor's memory.
Array make_array(Tensor<float> tensor);

// Gives the values of each array its shape.
Trace with_shapes(Trace trace);

}  // namespace heed
