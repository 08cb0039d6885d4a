// What edits stand for in a model.
#pragma once

#include <vector>

#include "heed/intervention.h"
#include "microscope/intervene/intervention.h"

namespace heed {

// In their order; what texts are needed for them are read. Throws what EditedModel throws.
std::vector<Intervention> resolve_edits(const Gpt& gpt, const std::vector<Edit>& edits);

}  // namespace heed
