// A patching grid to first order, from gradients.
#pragma once

#include "microscope/patch/patch.h"

namespace heed {

// As patch_sweep() of a request whose method is attribution, and that was checked: a cell's value
// is the corrupted prompt's metric and what estimate_patching() says of the cell.
PatchResult estimate_sweep(const Gpt& gpt, const PatchRequest& request);

}  // namespace heed
