// The parsed request of POST /v1/translations.
#pragma once

#include "engine/loaded_translator.h"
#include "server/fields.h"

namespace heed::server {

struct TranslationLimits {
  std::size_t inputs = 256;  // texts of one request
  std::int64_t beams = 64;
};

struct TranslationRequest {
  SourceTokens sources;
  BeamOptions search;
};

// Throws FieldError. `input` names a text of several by its number from 0, as in `choices`.
TranslationRequest read_translation_request(const Fields& fields,
                                            const LoadedTranslator& translator,
                                            const TranslationLimits& limits);

}  // namespace heed::server
