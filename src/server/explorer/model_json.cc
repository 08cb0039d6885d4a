#include "server/explorer/model_json.h"

#include "model/parameter_count.h"

namespace heed::server {

OrderedJson dimensions_json(const StackSpecification& config) {
  return {{"vocabulary", config.vocabulary_size},
          {"context", config.context},
          {"channels", config.channels},
          {"layers", config.layers},
          {"heads", config.heads()},
          {"head_size", config.head_size()},
          {"feed_forward", config.feed_forward()},
          {"parameters", count_parameters(config).total}};
}

}  // namespace heed::server
