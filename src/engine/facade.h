// What is behind heed::Model and heed::Translator, shared by the files of the facade.
#pragma once

#include "engine/loaded_model.h"
#include "engine/loaded_translator.h"
#include "heed/array.h"
#include "heed/heed.h"
#include "heed/trace.h"
#include "heed/translate.h"
#include "tensor/tensor.h"

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

struct Translator::Parts {
  LoadedTranslator loaded;
};

struct TranslatorAccess {
  static const LoadedTranslator& loaded(const Translator& translator) {
    return translator.parts_->loaded;
  }
  // The same translator, all of whose passes `editor` changes.
  static Translator with_editor(const Translator& translator, std::shared_ptr<Editor> editor) {
    const LoadedTranslator& from = loaded(translator);
    return Translator(std::make_unique<Translator::Parts>(
        Translator::Parts{{.name = from.name,
                           .model = from.model.with_editor(std::move(editor)),
                           .tokenizers = from.tokenizers,
                           .cache_type = from.cache_type,
                           .is_embedded = from.is_embedded,
                           .reading = from.reading}}));
  }
};

// A stack in the public interface's terms.
ModelArchitecture describe_architecture(const Transformer& model, StackSite site = StackSite::only);

// An array of the public interface, which takes over the tensor's memory.
Array make_array(Tensor<float> tensor);

// Gives the values of each array its shape.
Trace with_shapes(Trace trace);

}  // namespace heed
