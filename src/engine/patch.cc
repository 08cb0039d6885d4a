// Patching sweeps of the public facade.
#include "microscope/patch/patch.h"

#include "engine/model_parts.h"
#include "microscope/patch/patch_grid.h"

namespace heed {

PatchResult patch_sweep(const Model& model, const PatchRequest& request) {
  return patch_sweep(ModelAccess::loaded(model).gpt, request);
}

std::vector<std::string> patch_head_names(const Model& model, PatchGrid grid) {
  return patched_head_names(ModelAccess::loaded(model).gpt.specification(), patch_grid_kind(grid));
}

}  // namespace heed
