// The precision of a run's matrix products, where its settings leave it to heed.
#pragma once

#include "train/settings.h"

namespace heed {

// Decides the precision of settings that leave it open (precision=auto), by the instruction set in
// use and the width of the model alone: bf16 where tiles multiply it (AMX) and the model has at
// least 192 channels, else f32.
void settle_precision(TrainSettings& settings);

}  // namespace heed
