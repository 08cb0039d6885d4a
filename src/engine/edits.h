// Resolves the edits of the public interface to interventions.
#pragma once

#include <vector>

#include "engine/loaded_model.h"
#include "heed/intervention.h"
#include "microscope/intervene/intervention_text.h"

namespace heed {

// The interventions in order; runs the model on the texts that edits refer to. Throws what
// EditedModel throws.
std::vector<Intervention> resolve_edits(const Transformer& model, const std::vector<Edit>& edits,
                                        const WordsOf& words = {});

// Words as edits count them. Borrows the model.
WordsOf words_of(const LoadedModel& model);

}  // namespace heed
