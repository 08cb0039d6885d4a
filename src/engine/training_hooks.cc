#include "engine/training_hooks.h"

#include "base/error.h"
#include "base/progress.h"
#include "engine/point_keeper.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

// Passes over pairs have sequences of different lengths one below the other.
void require_rows(const Architecture& architecture, const std::vector<Hook>& hooks) {
  for (const Hook& hook : hooks) {
    for (const Point& point : points_named(hook.where, architecture)) {
      require(!is_plane_point(point.kind) && point.kind != PointKind::embedding &&
                  point.kind != PointKind::position,
              ErrorCode::unsupported,
              "'{}' cannot be hooked while a translator is trained: its batches have no scores, "
              "patterns and embeddings by themselves",
              point_name(point));
    }
  }
}

}  // namespace

TrainingHooks::TrainingHooks(const TrainingOptions& options)
    : options_(options), stop_([&options] {
        require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped in a pass");
      }) {}

PassHooks TrainingHooks::attach(const Architecture& architecture) {
  if (architecture.is_encoder_decoder()) {
    require_rows(architecture, options_.hooks);
    require_rows(architecture, options_.gradient_hooks);
  }
  editor_.emplace(architecture, options_.hooks, options_.gradient_hooks);
  editor_->refuse_unseen_changes();
  probe_.emplace(&*editor_, stop_);
  return {.editor = &*editor_, .probe = &*probe_};
}

}  // namespace heed
