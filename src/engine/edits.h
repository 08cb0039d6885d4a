// Resolves the edits of the public interface to interventions.
#pragma once

#include <vector>

#include "heed/intervention.h"
#include "microscope/intervene/intervention.h"

namespace heed {

// The interventions in order; runs the model on the texts that edits refer to. Throws what
// EditedModel throws.
std::vector<Intervention> resolve_edits(const Transformer& gpt, const std::vector<Edit>& edits);

}  // namespace heed
