// What heed::Model holds, shared by the files of the facade.
#pragma once

#include <cstdint>
#include <span>

#include "engine/loaded_model.h"
#include "heed/array.h"
#include "heed/heed.h"
#include "heed/trace.h"
#include "tensor/tensor.h"

namespace heed {

struct Model::Parts {
  LoadedModel model;

  // Throw Error{unsupported} for one of another number of stacks.
  const LoadedModel& of_one_text() const { return of(StacksWanted::one); }
  const LoadedModel& translator() const { return of(StacksWanted::two); }

 private:
  const LoadedModel& of(StacksWanted wanted) const {
    require_stacks(wanted, model.is_translator() ? StacksWanted::two : StacksWanted::one,
                   model.name);
    return model;
  }
};

struct ModelAccess {
  static const LoadedModel& loaded(const Model& model) { return model.parts_->model; }
  static const LoadedModel& of_one_text(const Model& model) { return model.parts_->of_one_text(); }
  static const LoadedModel& translator(const Model& model) { return model.parts_->translator(); }
  // Of as many stacks as the texts are for: two, where they have a source.
  static const LoadedModel& for_source(const Model& model, std::span<const std::int32_t> source) {
    return source.empty() ? of_one_text(model) : translator(model);
  }
  // The same model, all of whose passes `editor` changes.
  static Model with_editor(const Model& model, std::shared_ptr<Editor> editor) {
    return Model(
        std::make_unique<Model::Parts>(Model::Parts{loaded(model).with_editor(std::move(editor))}));
  }
};

// A stack in the public interface's terms.
ModelArchitecture describe_architecture(const Transformer& model, StackSite site = StackSite::only);

// Whether passes read f32 parameters themselves, of the processor or those of a device.
bool keeps_f32(const Parameters& parameters);

// An array of the public interface, which takes over the tensor's memory.
Array make_array(Tensor<float> tensor);

// Gives the values of each array its shape.
Trace with_shapes(Trace trace);

}  // namespace heed
