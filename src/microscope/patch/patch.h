// Activation patching, in layers and positions that are computed once, and its first-order
// estimate. Requests and results are those of heed/patch.h.
#pragma once

#include <span>

#include "heed/patch.h"
#include "model/gpt.h"

namespace heed {

// The metric of logits (V); `clean` are those of the clean prompt.
double patch_metric(const PatchMetric& metric, std::span<const float> logits,
                    std::span<const float> clean);

// What lies before a patch, in layers and in positions, is computed once; the cells of a layer go
// through the rest together. Otherwise as heed/patch.h says.
PatchResult patch_sweep(const Gpt& gpt, const PatchRequest& request);

}  // namespace heed
