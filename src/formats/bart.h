// What MarianMTModel and BartForConditionalGeneration share: the original Transformer's stacks,
// norms after their branches, and the names of their tensors.
#pragma once

#include <vector>

#include "formats/encoder_fields.h"

namespace heed {

// The fields that both have: sizes of both stacks, activation, rates, tokens. Positions, norms of
// the embedding and options of one of them are left to the caller.
Architecture read_bart_like(const ConfigFields& fields);
OrderedJson write_bart_like(const Architecture& architecture, const char* model_type,
                            const char* class_name);

std::vector<StoredTensor> bart_like_tensors(const Architecture& architecture);

// Sets something in both stacks.
template <class Change>
void in_both(Architecture& architecture, const Change& change) {
  for (StackSpecification& stack : architecture.stacks) change(stack);
}

}  // namespace heed
