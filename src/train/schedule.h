// The learning rate over the steps of a run.
#pragma once

#include "train/settings.h"

namespace heed {

// For step 0, 1, …: rises linearly over warmup_steps, then falls from learning_rate to
// min_learning_rate at decay_steps along a line or half a cosine, and stays there. Or it falls as
// 1/√step, without an end (Vaswani et al. 2017, 5.3).
double learning_rate_at(const TrainSettings& settings, std::int64_t step);

}  // namespace heed
