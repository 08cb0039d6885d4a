// The steps of training that golden files record.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernels.h"
#include "model/parameters.h"

namespace heed::testing {

// The golden files' AdamW: weights decay, vectors do not; the gradient is clipped to norm 1.
class GoldenSteps {
 public:
  explicit GoldenSteps(const Parameters& parameters)
      : list_(parameters.list()),
        layout_(parameters.layout()),
        first_moment_(layout_),
        second_moment_(layout_) {}

  // Returns the gradient's norm before it is clipped.
  double take(Gradients& gradients, Parameters& parameters) {
    const double norm = std::sqrt(kernels::squared_norm(gradients.all()));
    ++step_;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const ArenaLayout::Entry& entry = layout_.entries()[i];
      kernels::adamw_step({.parameters = parameters.tensor(list_[i].id).span(),
                           .gradients = gradients.tensor(list_[i].id).span(),
                           .first_moment = first_moment_.view(entry).span(),
                           .second_moment = second_moment_.view(entry).span()},
                          {.learning_rate = 1e-3F,
                           .beta1 = 0.9F,
                           .beta2 = 0.95F,
                           .epsilon = 1e-8F,
                           .weight_decay = entry.shape.rank() == 2 ? 0.1F : 0.0F,
                           .gradient_scale = static_cast<float>(std::min(1.0, 1.0 / norm)),
                           .step = step_});
    }
    return norm;
  }

 private:
  std::vector<Parameter> list_;
  const ArenaLayout& layout_;
  Arena<float> first_moment_;
  Arena<float> second_moment_;
  std::int64_t step_ = 0;
};

}  // namespace heed::testing
