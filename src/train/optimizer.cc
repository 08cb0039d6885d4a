#include "train/optimizer.h"

#include <cmath>

#include "kernels/kernels.h"
#include "train/schedule.h"

namespace heed {

Optimizer::Optimizer(const ArenaLayout& layout, const TrainSettings& settings)
    : settings_(settings) {
  first_moment_ = Arena<float>(layout);
  second_moment_ = Arena<float>(layout);
  // Neighbours that decay alike become one group. The padding between tensors is zero in parameters
  // and gradients and stays so.
  const auto& entries = layout.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto begin = static_cast<std::size_t>(entries[i].offset);
    const auto end =
        static_cast<std::size_t>(i + 1 < entries.size() ? entries[i + 1].offset : layout.size());
    const bool decays = entries[i].shape.rank() >= 2;
    if (!groups_.empty() && groups_.back().decays == decays) {
      groups_.back().end = end;
    } else {
      groups_.push_back({begin, end, decays});
    }
  }
}

double Optimizer::update(std::int64_t step, const GptGradients& gradients,
                         GptParameters& parameters, double rate_factor) {
  const double length = std::sqrt(kernels::squared_norm(gradients.all()));
  const bool too_long = settings_.clip > 0 && length > settings_.clip;
  kernels::AdamWStep<float> update{
      .learning_rate = static_cast<float>(learning_rate_at(settings_, step) * rate_factor),
      .beta1 = static_cast<float>(settings_.beta1),
      .beta2 = static_cast<float>(settings_.beta2),
      .epsilon = static_cast<float>(settings_.epsilon),
      .gradient_scale = too_long ? static_cast<float>(settings_.clip / length) : 1.0F,
      .step = step + 1};
  for (const Group& group : groups_) {
    const std::size_t size = group.end - group.begin;
    update.weight_decay = group.decays ? static_cast<float>(settings_.weight_decay) : 0.0F;
    kernels::adamw_step({.parameters = parameters.all().subspan(group.begin, size),
                         .gradients = gradients.all().subspan(group.begin, size),
                         .first_moment = first_moment_.all().subspan(group.begin, size),
                         .second_moment = second_moment_.all().subspan(group.begin, size)},
                        update);
  }
  return length;
}

}  // namespace heed
