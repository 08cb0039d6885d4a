#include "server/serve.h"

#include <fmt/format.h>

#include "base/memory.h"
#include "engine/embedded_files.h"
#include "server/context.h"
#include "server/explorer.h"
#include "server/router.h"
#include "server/service.h"
#include "server/translations.h"

namespace heed::server {
namespace {

// Enough that connections rarely wait for each other; each keeps a few hundred kilobytes after a
// peak.
constexpr int malloc_arenas = 4;
// Traces and interventions come and go within their budget, which counts no gaps between them.
constexpr std::int64_t large_block = 128 << 10;

void limit_memory(const ServeOptions& options) {
  limit_malloc_arenas(malloc_arenas);
  if (options.face == Face::explorer) return_large_blocks(large_block);
}

std::string address_of(const HttpOptions& options, int port) {
  const bool version_six = options.host.find(':') != std::string::npos;
  return version_six ? fmt::format("http://[{}]:{}", options.host, port)
                     : fmt::format("http://{}:{}", options.host, port);
}

std::int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// What replies and messages call the model: none of these names reveals its directory.
std::vector<std::string> served_names(const ServeOptions& options, const std::string& own) {
  return options.aliases.empty() ? std::vector{own} : options.aliases;
}

void observe_requests(Router& router, Metrics& metrics) {
  router.set_observer([&metrics](const std::string& route, int status, double seconds) {
    metrics.request_seconds.observe(route, status, seconds);
  });
}

void listen(const Router& router, const ServeOptions& options, StopFlag stop,
            const std::function<void(const std::string& address)>& listening) {
  const Gate gate(options.gate);
  HttpServer server(router, gate, options.http);
  if (listening) listening(address_of(options.http, server.port()));
  server.run(stop);
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

}  // namespace

void serve(LoadedModel model, const ServeOptions& options, StopFlag stop,
           const std::function<void(const std::string& address)>& listening) {
  limit_memory(options);
  ChosenTemplate chosen = choose_chat_template(options.chat_template, model);
  if (!chosen.warning.empty() && options.warn) options.warn(chosen.warning);
  const std::vector<std::string> names = served_names(options, model.name);
  model.name = names.front();
  Compute compute;
  Metrics metrics;
  Scheduler scheduler(model, compute, metrics, options.scheduler);
  const auto translator = hold_built_in_translator(options.scheduler.cache_type);
  Context context{.model = model,
                  .options = options,
                  .name = model.name,
                  .compute = compute,
                  .metrics = metrics,
                  .scheduler = scheduler,
                  .created = seconds_now(),
                  .aliases = {names.begin() + 1, names.end()},
                  .chat_template = std::move(chosen.chat_template),
                  .translator = translator.get()};
  Router router;
  observe_requests(router, metrics);
  register_service(router, context);
  if (options.face == Face::explorer) register_explorer(router, context);
  listen(router, options, stop, listening);
}

void serve(LoadedTranslator translator, const ServeOptions& options, StopFlag stop,
           const std::function<void(const std::string& address)>& listening) {
  limit_memory(options);
  const std::vector<std::string> names = served_names(options, translator.name);
  translator.name = names.front();
  translator.cache_type = options.scheduler.cache_type;
  Metrics metrics;
  Compute compute;
  TranslationContext context{.translator = translator,
                             .name = translator.name,
                             .aliases = {names.begin() + 1, names.end()},
                             .compute = compute,
                             .metrics = metrics,
                             .created = seconds_now()};
  Router router;
  observe_requests(router, metrics);
  register_translation_service(router, context);
  if (options.face == Face::explorer) {
    register_translator_explorer(router, compute, translator, options.explorer.trace_budget);
  }
  listen(router, options, stop, listening);
}

}  // namespace heed::server
