#include "train/automatic_precision.h"

#include "kernels/instruction_sets.h"

namespace heed {

void settle_precision(TrainSettings& settings) {
  if (settings.precision) return;
  constexpr std::int64_t least_channels = 256;
  const bool takes_bf16 = kernels::has_tile_products() && settings.model.channels >= least_channels;
  settings.precision = takes_bf16 ? kernels::Precision::bf16 : kernels::Precision::f32;
}

}  // namespace heed
