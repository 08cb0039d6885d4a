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
};

}  // namespace heed
