// What one core of this machine sustains in the parts of a training step, each measured on its own:
// the ceilings that scaling plans (engine/plan/scaling_plan.h) are made of.
#pragma once

#include "base/progress.h"
#include "engine/plan/scaling_plan.h"

namespace heed {

struct RateMeasurement {
  int threads = 1;             // that share the work; rates are those of one of them
  std::int64_t sequences = 0;  // in a measured pass, at most
  double pass_flops = 2e10;    // of a measured pass, about
  double seconds = 1.5;        // that each measurement goes on, at least
  ProgressCallback progress = nullptr;
  StopFlag stop = nullptr;
};

// Measures the rates of training with the shape and precision of `settings`, in a few seconds:
// forward and backward passes over two blocks with their share of the vocabulary, and AdamW. Blocks
// too large for that time or for a GiB are measured with fewer heads of the same size, and only the
// beginning of long sequences. Settings that leave their precision open get the one that a run on
// this machine would take.
// Throws Error{interrupted} when stopped.
TrainingRates measure_training_rates(TrainSettings& settings, const RateMeasurement& measurement);

// TrainingRates::memory alone, over arrays of `parameters`, or fewer where memory is short.
double measure_memory_rate(std::int64_t parameters, const RateMeasurement& measurement);

}  // namespace heed
