#include "model/places.h"

#include "base/error.h"

namespace heed {

std::int64_t checked_layer(std::int64_t layer, const GptConfig& config) {
  require(layer >= 0 && layer < config.layers, ErrorCode::invalid_argument,
          "layer {} does not exist: the model has layers 0 to {}", layer, config.layers - 1);
  return layer;
}

std::int64_t checked_head(std::int64_t head, const GptConfig& config) {
  require(head >= 0 && head < config.heads, ErrorCode::invalid_argument,
          "head {} does not exist: a layer has heads 0 to {}", head, config.heads - 1);
  return head;
}

std::int64_t checked_neuron(std::int64_t neuron, const GptConfig& config) {
  require(neuron >= 0 && neuron < config.feed_forward, ErrorCode::invalid_argument,
          "neuron {} does not exist: a layer has neurons 0 to {}", neuron, config.feed_forward - 1);
  return neuron;
}

}  // namespace heed
