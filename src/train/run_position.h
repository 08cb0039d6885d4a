// How far a run is.
#pragma once

#include <cstdint>
#include <limits>

#include "train/batch_order.h"
#include "train/settings.h"

namespace heed {

// Random numbers need no state of their own: they are functions of the seed and these counters.
struct RunPosition {
  std::int64_t step = 0;  // steps finished
  bool evaluated = true;  // false: what is due after `step` (evaluation, sample, …) was stopped
  DataPosition data;
  // The lowest validation loss so far or, where BLEU is measured, the lowest of −BLEU; and when.
  double best_cost = std::numeric_limits<double>::infinity();
  std::int64_t best_step = 0;
  double seconds = 0;  // spent training
};

// Whether nothing is left to train: all steps are done, or evaluations no longer improve
// (TrainSettings::early_stop).
bool is_trained(const TrainSettings& settings, const RunPosition& position);

}  // namespace heed
