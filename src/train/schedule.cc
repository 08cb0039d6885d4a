#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heed {

double learning_rate_at(const TrainSettings& settings, std::int64_t step) {
  const double highest = settings.learning_rate;
  if (step < settings.warmup_steps) {
    return highest * static_cast<double>(step + 1) / static_cast<double>(settings.warmup_steps + 1);
  }
  if (settings.schedule == Schedule::constant) return highest;
  if (settings.schedule == Schedule::inverse_sqrt) {
    return highest * std::sqrt(static_cast<double>(settings.warmup_steps + 1) /
                               static_cast<double>(step + 1));
  }
  const std::int64_t last = settings.decay_steps > 0 ? settings.decay_steps : settings.steps;
  const std::int64_t falling = std::max<std::int64_t>(last - settings.warmup_steps, 1);
  const double progress = std::min(
      1.0, static_cast<double>(step - settings.warmup_steps) / static_cast<double>(falling));
  const double remaining = settings.schedule == Schedule::linear
                               ? 1.0 - progress
                               : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return settings.min_learning_rate + remaining * (highest - settings.min_learning_rate);
}

}  // namespace heed
