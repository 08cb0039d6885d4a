// What is behind heed::Model, for the parts of the facade that have files of their own.
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
