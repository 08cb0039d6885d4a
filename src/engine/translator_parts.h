// The implementation behind heed::Translator, shared by the files of the facade.
#pragma once

#include "engine/loaded_translator.h"
#include "heed/translate.h"

namespace heed {

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
                           .is_embedded = from.is_embedded}}));
  }
};

}  // namespace heed
