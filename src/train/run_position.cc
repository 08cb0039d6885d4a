#include "train/run_position.h"

#include <cmath>

namespace heed {

bool is_trained(const TrainSettings& settings, const RunPosition& position) {
  if (position.step >= settings.steps) return true;
  if (settings.early_stop <= 0 || settings.evaluate_every <= 0 ||
      !std::isfinite(position.best_cost))
    return false;
  return (position.step - position.best_step) / settings.evaluate_every >= settings.early_stop;
}

}  // namespace heed
