// The implementation behind heed::Model, shared by the files of the facade.
#pragma once

#include "engine/loaded_model.h"
#include "heed/heed.h"

namespace heed {

struct Model::Parts {
  LoadedModel model;
};

struct ModelAccess {
  static const LoadedModel& loaded(const Model& model) { return model.parts_->model; }
};

}  // namespace heed
