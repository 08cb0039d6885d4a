// Training that is interrupted.
#pragma once

#include <atomic>
#include <cstdint>

#include "train/trainer.h"

namespace heed::testing {

// Asks to stop once so many steps are done.
class StopAfter : public TrainObserver {
 public:
  explicit StopAfter(std::int64_t step) : step_(step) {}
  void stepped(const StepReport& report) override { flag = report.step >= step_; }
  std::atomic<bool> flag = false;

 private:
  std::int64_t step_;
};

}  // namespace heed::testing
