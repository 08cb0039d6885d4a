// Stopping inside a forward or backward pass.
#pragma once

#include "base/progress.h"
#include "model/probe.h"

namespace heed {

// Throws Error{interrupted} out of a pass at its next point once a stop is requested. What the pass
// computed so far is discarded by the caller.
class StopProbe final : public Probe {
 public:
  explicit StopProbe(StopFlag stop) : stop_(stop) {}

  bool wants(const Point&) const override { return not_stopped(); }
  void observe(const Point&, View<const float>) override { not_stopped(); }
  bool wants_gradient(const Point&) const override { return not_stopped(); }

 private:
  // False, so that nothing is computed for this probe.
  bool not_stopped() const {
    require(!stop_requested(stop_), ErrorCode::interrupted, "stopped in a pass");
    return false;
  }

  StopFlag stop_;
};

}  // namespace heed
