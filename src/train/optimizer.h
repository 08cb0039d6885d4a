// AdamW over the arena of parameters: weight decay on matrices only, gradients clipped by norm.
#pragma once

#include "model/parameters.h"
#include "train/settings.h"

namespace heed {

class Optimizer {
 public:
  Optimizer(const ArenaLayout& layout, const TrainSettings& settings);
  Optimizer(const StackSpecification& config, const TrainSettings& settings)
      : Optimizer(gpt_layout(config), settings) {}

  // Updates the parameters from `gradients` and returns the norm of the gradients before clipping.
  // `step` counts from 0; `rate_factor` multiplies the schedule's learning rate.
  double update(std::int64_t step, const GptGradients& gradients, GptParameters& parameters,
                double rate_factor = 1);

  std::span<float> first_moment() { return first_moment_.all(); }
  std::span<float> second_moment() { return second_moment_.all(); }
  std::span<const float> first_moment() const { return first_moment_.all(); }
  std::span<const float> second_moment() const { return second_moment_.all(); }

 private:
  // A run of the arena whose tensors decay alike.
  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool decays = false;
  };

  TrainSettings settings_;
  Arena<float> first_moment_;
  Arena<float> second_moment_;
  std::vector<Group> groups_;
};

}  // namespace heed
