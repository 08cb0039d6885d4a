// Why a word is predicted: the paths that decided it, each measured by switching it off.
#include "base/error.h"
#include "engine/views/graph_json.h"
#include "microscope/intervene/graph_effects.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

Reply causes(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "the paths to a word are");
  require(trace.interventions.empty(), ErrorCode::unsupported,
          "the paths to a word do not support interventions; trace {} has some", trace.id);
  const std::int64_t position = position_of(request, trace);
  const std::span<const std::int32_t> tokens =
      trace.pass->tokens().first(static_cast<std::size_t>(position) + 1);
  const auto stop_if_asked = [&] {
    require(!stop_requested(request.stop), ErrorCode::interrupted,
            "stopped while looking for the paths to a word");
  };
  const CauseOptions options{
      .paths = static_cast<std::size_t>(bounded(request, "paths", 3, 1, 8)),
      .poll = stop_if_asked,
  };
  OrderedJson document{{"position", position}};
  document.update(
      causes_json(trace.model(), tokens, word_causes(trace.model().transformer, tokens, options)));
  return json_reply(document);
}

}  // namespace

void add_cause_routes(TraceRoutes& routes) { routes.add("GET", "/api/traces/{id}/causes", causes); }

}  // namespace heed::server
