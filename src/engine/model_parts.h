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
  // The same model, all of whose passes `editor` changes.
  static Model with_editor(const Model& model, std::shared_ptr<Editor> editor) {
    return Model(
        std::make_unique<Model::Parts>(Model::Parts{loaded(model).with_editor(std::move(editor))}));
  }
};

}  // namespace heed
