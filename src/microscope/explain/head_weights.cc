#include "microscope/explain/head_weights.h"

namespace heed {

LayerHeads::LayerHeads(const Gpt& gpt, std::int64_t layer)
    : head_size_(gpt.config().head_size),
      query_key_value_(gpt.parameters().block(layer).query_key_value.weight),
      outputs_(Shape{gpt.config().attention_width(), gpt.config().channels}) {
  const View<const float> projection = gpt.parameters().block(layer).projection.weight;  // (C, A)
  const View<float> outputs = outputs_.view();
  for (std::int64_t a = 0; a < outputs.extent(0); ++a) {
    for (std::int64_t c = 0; c < outputs.extent(1); ++c) outputs(a, c) = projection(c, a);
  }
}

View<const float> LayerHeads::third(std::int64_t index) const {
  const std::int64_t a = outputs_.shape()[0];
  return query_key_value_.slice(0, index * a, (index + 1) * a);
}

View<const float> LayerHeads::rows(std::int64_t third_index, std::int64_t head) const {
  return third(third_index).slice(0, head * head_size_, (head + 1) * head_size_);
}

View<const float> LayerHeads::output(std::int64_t head) const {
  return outputs_.view().slice(0, head * head_size_, (head + 1) * head_size_);
}

}  // namespace heed
