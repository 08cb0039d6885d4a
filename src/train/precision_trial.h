// The precision of a run's matrix products, where its settings leave it to the machine.
#pragma once

#include "base/progress.h"
#include "train/settings.h"
#include "train/trainer.h"

namespace heed {

// What the same training pass took on this machine, the best of some.
struct PrecisionTrial {
  double f32_seconds = 0;
  double bf16_seconds = 0;

  // bf16 rounds operands to 8 bits, so it has to be faster by more than timings scatter.
  bool prefers_bf16() const { return bf16_seconds * 1.1 < f32_seconds; }
};

// Times forward and backward passes of one layer of the run's L, with 1/L of its vocabulary, over
// as many of its tokens as take about a second in all. `settings` have their vocabulary. Ends early
// when stopped.
PrecisionTrial try_precisions(const TrainSettings& settings, StopFlag stop = nullptr);

// Decides the precision of settings that leave it open: bf16 where this machine multiplies it and a
// trial found it faster, else f32. The observer hears of the trial.
void choose_precision(TrainSettings& settings, StopFlag stop, TrainObserver& observer);

}  // namespace heed
