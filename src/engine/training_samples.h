// Texts and translations that a model generates while it is trained.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"
#include "train/settings.h"
#include "train/trainer.h"

namespace heed {

// settings.sample_tokens tokens after the end-of-text token or, without one, after a newline.
// Throws Error{interrupted} when stopped.
std::string run_sample(const Transformer& transformer, const Tokenizer& tokenizer,
                       const TrainSettings& settings, StopFlag stop);

// The best translation of each source, for Measure::bleu, with the beams and the length penalty of
// `settings`. Throws Error{interrupted} when stopped.
std::vector<std::string> translate_sources(const Transformer& model,
                                           const TranslationTokenizers& tokenizers,
                                           std::span<const std::string> sources,
                                           const TrainSettings& settings, StopFlag stop);

}  // namespace heed
