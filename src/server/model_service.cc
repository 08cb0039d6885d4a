#include "server/model_service.h"

#include <chrono>
#include <utility>

#include "engine/embedded_files.h"
#include "server/explorer.h"
#include "server/service.h"
#include "server/translations.h"

namespace heed::server {
namespace {

std::int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// What replies and messages call the model: none of these names reveals its directory.
std::vector<std::string> served_names(const ServeOptions& options, const std::string& own) {
  return options.aliases.empty() ? std::vector{own} : options.aliases;
}

template <class Loaded>
Loaded named(Loaded model, const std::vector<std::string>& names) {
  model.name = names.front();
  return model;
}

void observe_requests(Router& router, Metrics& metrics) {
  router.set_observer([&metrics](const std::string& route, int status, double seconds) {
    metrics.request_seconds.observe(route, status, seconds);
  });
}

// The one that heed carries; null in builds without it.
std::unique_ptr<HeldTranslator> hold_built_in_translator(CacheType cache_type) {
  if (!translator_files()) return nullptr;
  return std::make_unique<HeldTranslator>([cache_type] {
    LoadedTranslator translator = load_translator(std::string(embedded_translator_name));
    translator.cache_type = cache_type;
    return translator;
  });
}

ChosenTemplate chosen_template(const ServeOptions& options, const LoadedModel& model) {
  ChosenTemplate chosen = choose_chat_template(options.chat_template, model);
  if (!chosen.warning.empty() && options.warn) options.warn(chosen.warning);
  return chosen;
}

}  // namespace

ModelService::ModelService(LoadedModel model, const ServeOptions& options)
    : ModelService(std::move(model), options, chosen_template(options, model),
                   served_names(options, model.name)) {}

ModelService::ModelService(LoadedModel&& model, const ServeOptions& options, ChosenTemplate chosen,
                           const std::vector<std::string>& names)
    : model_(named(std::move(model), names)),
      scheduler_(model_, compute_, metrics_, options.scheduler),
      translator_(hold_built_in_translator(options.scheduler.cache_type)),
      context_{.model = model_,
               .options = options,
               .name = model_.name,
               .compute = compute_,
               .metrics = metrics_,
               .scheduler = scheduler_,
               .created = seconds_now(),
               .aliases = {names.begin() + 1, names.end()},
               .chat_template = std::move(chosen.chat_template),
               .translator = translator_.get()} {
  observe_requests(router_, metrics_);
  register_service(router_, context_);
  if (options.face == Face::explorer) register_explorer(router_, context_);
}

TranslatorService::TranslatorService(LoadedTranslator translator, const ServeOptions& options)
    : TranslatorService(std::move(translator), options, served_names(options, translator.name)) {}

TranslatorService::TranslatorService(LoadedTranslator&& translator, const ServeOptions& options,
                                     const std::vector<std::string>& names)
    : translator_(named(std::move(translator), names)),
      context_{.translator = translator_,
               .name = translator_.name,
               .aliases = {names.begin() + 1, names.end()},
               .compute = compute_,
               .metrics = metrics_,
               .created = seconds_now()} {
  translator_.cache_type = options.scheduler.cache_type;
  observe_requests(router_, metrics_);
  register_translation_service(router_, context_);
  if (options.face == Face::explorer) {
    register_translator_explorer(router_, compute_, translator_, options.explorer.trace_budget);
  }
}

}  // namespace heed::server
