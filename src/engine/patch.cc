// Patching sweeps of the public facade.
#include "microscope/patch/patch.h"

#include "engine/model_parts.h"

namespace heed {

PatchResult patch_sweep(const Model& model, const PatchRequest& request) {
  return patch_sweep(ModelAccess::loaded(model).gpt, request);
}

}  // namespace heed
