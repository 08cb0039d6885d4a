// A server of a translator: POST /v1/translations, and the endpoints of operation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/loaded_translator.h"
#include "server/compute.h"
#include "server/metrics.h"
#include "server/router.h"
#include "server/translation_request.h"

namespace heed::server {

// What POST /v1/translations needs.
struct TranslationService {
  std::function<const LoadedTranslator&()> translator;  // called on any thread
  std::string name{};                                   // what replies call it; empty: its own name
  Compute& compute;
  Metrics& metrics;
  std::int64_t created;  // when the server began, in seconds since 1970
  TranslationLimits limits{};
};

// POST /v1/translations alone, of a server whose own model may be of another kind.
void register_translations(Router& router, TranslationService service);

// Shared by all handlers; lives as long as the server.
struct TranslationContext {
  const LoadedTranslator& translator;
  std::string name;                  // what replies call the model
  std::vector<std::string> aliases;  // further names
  Compute& compute;
  Metrics& metrics;
  std::int64_t created;  // when the server began, in seconds since 1970
  TranslationLimits limits{};
};

// The routes of register_service(); those that continue texts refuse, and say what does not.
void register_translation_service(Router& router, TranslationContext& context);

}  // namespace heed::server
