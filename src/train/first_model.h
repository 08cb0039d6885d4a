// The model that a run trains, before its first step.
#pragma once

#include "model/gpt.h"
#include "tokenizer/tokenizer.h"
#include "train/trainer.h"

namespace heed {

// The model of request.from or, without one, weights drawn from settings.seed; with
// `has_checkpoint`, only its shape: the checkpoint has the weights. Throws Error{unsupported} for
// quantised weights, Error{conflict} for a model of another shape than the settings',
// Error{corrupt_data} for one whose tokenizer has more tokens than it.
Gpt first_model(const TrainRequest& request, const TrainSettings& settings,
                const Tokenizer& tokenizer, bool has_checkpoint);

}  // namespace heed
