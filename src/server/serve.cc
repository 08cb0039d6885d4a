#include "server/serve.h"

#include <fmt/format.h>

#include "server/context.h"
#include "server/explorer.h"
#include "server/router.h"

namespace heed::server {
namespace {

std::string address_of(const HttpOptions& options, int port) {
  const bool version_six = options.host.find(':') != std::string::npos;
  return version_six ? fmt::format("http://[{}]:{}", options.host, port)
                     : fmt::format("http://{}:{}", options.host, port);
}

void register_service(Router& router, Context&) {
  router.add("GET", "/health", [](const Request&) { return json_reply({{"status", "ok"}}); });
}

}  // namespace

void serve(LoadedModel model, const ServeOptions& options, StopFlag stop,
           const std::function<void(const std::string& address)>& listening) {
  Compute compute;
  Context context{.model = model, .options = options, .compute = compute};
  Router router;
  register_service(router, context);
  if (options.face == Face::explorer) register_explorer(router, context);
  const Gate gate(options.gate);
  HttpServer server(router, gate, options.http);
  if (listening) listening(address_of(options.http, server.port()));
  server.run(stop);
}

}  // namespace heed::server
