#include "server/explorer.h"

namespace heed::server {

void register_explorer(Router& router, Context& context) {
  router.add("GET", "/api/status", [&context](const Request&) {
    const std::chrono::duration<double> uptime = std::chrono::steady_clock::now() - context.started;
    return json_reply({{"uptime_seconds", uptime.count()}});
  });
}

}  // namespace heed::server
