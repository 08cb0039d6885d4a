// The derivation of a number of a trace.
#include "engine/views/derivation.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

constexpr std::int64_t usual_terms = 24;

Reply derivation(State& state, const Request& request) {
  StoredTrace& trace = trace_of(state, request);
  const PointElement element{.point = request.parameter("point").value_or(""),
                             .layer = request.integer("layer", -1),
                             .head = request.integer("head", 0),
                             .position = position_of(request, trace),
                             .index = request.integer("index", 0),
                             .key = request.integer("key", 0)};
  const auto terms = static_cast<std::size_t>(bounded(request, "terms", usual_terms, 1, 1 << 20));
  return json_reply(
      derivation_json(derive({trace.model(), *trace.pass, *trace.attention}, element), terms));
}

}  // namespace

void add_derivation_routes(StateRoutes& routes) {
  routes.add("GET", "/api/traces/{id}/derivation", derivation);
}

}  // namespace heed::server
