#include "engine/arrays.h"

#include <memory>
#include <utility>

namespace heed {

Array make_array(Tensor<float> tensor) {
  std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  const auto owner = std::make_shared<Tensor<float>>(std::move(tensor));
  return {std::move(shape), std::shared_ptr<float[]>(owner, owner->data())};
}

Trace with_shapes(Trace trace) {
  for (TracedArray& array : trace.arrays) array.values = array.values.reshaped(array.shape);
  return trace;
}

}  // namespace heed
