// POST /v1/translations: its request, the translator that a server holds beside its model, and a
// server of a translator alone.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "server/compute.h"
#include "server/fields.h"
#include "server/metrics.h"
#include "server/router.h"

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
TranslationRequest read_translation_request(const Fields& fields, const LoadedModel& translator,
                                            const TranslationLimits& limits);

// Loaded when it is first used, so that servers which nobody asks for translations neither wait for
// it nor keep it in memory. For any thread.
class HeldTranslator {
 public:
  explicit HeldTranslator(std::function<LoadedModel()> load) : load_(std::move(load)) {}
  HeldTranslator(const HeldTranslator&) = delete;
  HeldTranslator& operator=(const HeldTranslator&) = delete;

  // Stays where it is. Throws what loading throws; the next call then tries again.
  const LoadedModel& get();

  bool is_loaded() const;

 private:
  std::function<LoadedModel()> load_;
  mutable std::mutex mutex_;
  std::optional<LoadedModel> translator_;
};

// What POST /v1/translations needs.
struct TranslationService {
  std::function<const LoadedModel&()> translator;  // called on any thread
  std::string name{};                              // what replies call it; empty: its own name
  Compute& compute;
  Metrics& metrics;
  std::int64_t created;  // when the server began, in seconds since 1970
  TranslationLimits limits{};
};

// That of a translator which is held beside a model.
TranslationService of_held(HeldTranslator& held, Compute& compute, Metrics& metrics,
                           std::int64_t created);

// POST /v1/translations alone, of a server whose own model may be of another kind.
void register_translations(Router& router, TranslationService service);

// Shared by all handlers; lives as long as the server.
struct TranslationContext {
  const LoadedModel& translator;
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
