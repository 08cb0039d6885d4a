// The description of a model for the page.
#pragma once

#include "base/json.h"
#include "model/architecture.h"

namespace heed::server {

// {"vocabulary", "context", "channels", "layers", "heads", "head_size", "feed_forward",
//  "parameters"}
OrderedJson dimensions_json(const StackSpecification& config);

}  // namespace heed::server
