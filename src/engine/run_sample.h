// Text that a model generates while it is trained.
#pragma once

#include <string>

#include "base/progress.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"
#include "train/settings.h"

namespace heed {

// settings.sample_tokens tokens after the end-of-text token or, without one, after a newline.
// Throws Error{interrupted} when stopped.
std::string run_sample(const Transformer& gpt, const Tokenizer& tokenizer,
                       const TrainSettings& settings, StopFlag stop);

}  // namespace heed
