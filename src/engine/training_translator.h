// Translations by a model that is being trained, for Measure::bleu.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace heed {

// The best translation of each source, with the beams and the length penalty of `settings`. Throws
// Error{interrupted} when stopped.
std::vector<std::string> translate_sources(const Transformer& model,
                                           const TranslationTokenizers& tokenizers,
                                           std::span<const std::string> sources,
                                           const TrainSettings& settings, StopFlag stop);

}  // namespace heed
