// First-order estimates of a patching grid, from gradients.
#pragma once

#include "microscope/patch/patch.h"

namespace heed {

// patch_sweep() for a validated request with the method attribution: a cell's value is the metric
// of the corrupted prompt plus the effect from estimate_patching().
PatchResult estimate_sweep(const Transformer& gpt, const PatchRequest& request);

}  // namespace heed
