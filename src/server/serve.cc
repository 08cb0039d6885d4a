#include "server/serve.h"

#include <fmt/format.h>

#include "base/memory.h"
#include "server/context.h"
#include "server/explorer.h"
#include "server/router.h"
#include "server/service.h"

namespace heed::server {
namespace {

// Enough that connections rarely wait for each other; each keeps a few hundred kilobytes after a
// peak.
constexpr int malloc_arenas = 4;

std::string address_of(const HttpOptions& options, int port) {
  const bool version_six = options.host.find(':') != std::string::npos;
  return version_six ? fmt::format("http://[{}]:{}", options.host, port)
                     : fmt::format("http://{}:{}", options.host, port);
}

}  // namespace

void serve(LoadedModel model, const ServeOptions& options, StopFlag stop,
           const std::function<void(const std::string& address)>& listening) {
  limit_malloc_arenas(malloc_arenas);
  ChosenTemplate chosen = choose_chat_template(options.chat_template, model.name);
  if (!chosen.warning.empty() && options.warn) options.warn(chosen.warning);
  // Messages name the model, too: none of them reveals its directory.
  std::vector<std::string> names = options.aliases;
  if (names.empty()) names.push_back(model.name);
  model.name = names.front();
  Compute compute;
  Metrics metrics;
  Scheduler scheduler(model, compute, metrics, options.scheduler);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Context context{.model = model,
                  .options = options,
                  .name = model.name,
                  .compute = compute,
                  .metrics = metrics,
                  .scheduler = scheduler,
                  .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                  .aliases = {names.begin() + 1, names.end()},
                  .chat_template = std::move(chosen.chat_template)};
  Router router;
  router.set_observer([&metrics](const std::string& route, int status, double seconds) {
    metrics.request_seconds.observe(route, status, seconds);
  });
  register_service(router, context);
  if (options.face == Face::explorer) register_explorer(router, context);
  const Gate gate(options.gate);
  HttpServer server(router, gate, options.http);
  if (listening) listening(address_of(options.http, server.port()));
  server.run(stop);
}

}  // namespace heed::server
