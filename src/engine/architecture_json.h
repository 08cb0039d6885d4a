// What a model is, for documents and pages.
#pragma once

#include "base/json.h"
#include "model/architecture.h"

namespace heed {

// {"family", "norm", "positions", "key_value_heads", "windows", "gated", "activation",
//  "query_key_norm", "residual", "rotary": {"base", "channels", "scaling"}, "biases"}; rotary only
// where positions are. The family is a checkpoint format's name, or "custom".
OrderedJson architecture_json(const StackSpecification& stack);

}  // namespace heed
