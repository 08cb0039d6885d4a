// Hooks of the public facade in the passes of training steps.
#pragma once

#include <functional>
#include <optional>

#include "engine/hooks.h"
#include "heed/train.h"
#include "train/trainer.h"

namespace heed {

class TrainingHooks {
 public:
  explicit TrainingHooks(const TrainingOptions& options);
  TrainingHooks(const TrainingHooks&) = delete;
  TrainingHooks& operator=(const TrainingHooks&) = delete;

  bool empty() const { return options_.hooks.empty() && options_.gradient_hooks.empty(); }
  // Throws Error{invalid_argument} for unknown points, and Error{unsupported} for those that passes
  // over pairs do not show.
  PassHooks attach(const Architecture& architecture);

 private:
  const TrainingOptions& options_;
  std::function<void()> stop_;
  std::optional<HookEditor> editor_;
  std::optional<HookProbe> probe_;
};

}  // namespace heed
