#include "server/serve.h"

#include <fmt/format.h>

#include <utility>

#include "base/memory.h"
#include "server/model_service.h"
#include "server/router.h"

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

void listen(const Router& router, const ServeOptions& options, StopFlag stop,
            const std::function<void(const std::string& address)>& listening) {
  const Gate gate(options.gate);
  HttpServer server(router, gate, options.http);
  if (listening) listening(address_of(options.http, server.port()));
  server.run(stop);
}

}  // namespace

void serve(LoadedModel model, const ServeOptions& options, StopFlag stop,
           const std::function<void(const std::string& address)>& listening) {
  limit_memory(options);
  const ModelService served(std::move(model), options);
  listen(served.router(), options, stop, listening);
}

}  // namespace heed::server
