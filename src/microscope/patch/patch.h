// Activation patching and its first-order estimate. Requests and results are those of
// heed/patch.h.
#pragma once

#include <span>

#include "heed/patch.h"
#include "model/transformer.h"

namespace heed {

// The metric of logits (V); `clean` holds the logits of the clean prompt.
double patch_metric(const PatchMetric& metric, std::span<const float> logits,
                    std::span<const float> clean);

// As in heed/patch.h. Layers and positions before a patch are computed once for all cells, and the
// cells of a layer share the forward passes after it.
PatchResult patch_sweep(const Transformer& gpt, const PatchRequest& request);

}  // namespace heed
