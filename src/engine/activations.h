// What other files of the facade need of recorded passes.
#pragma once

#include "heed/activations.h"
#include "model/gpt.h"

namespace heed {

// The model that ran.
const Gpt& activations_model(const Activations& found);

}  // namespace heed
