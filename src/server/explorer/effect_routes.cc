// What causes a prediction: the head with the largest effect on it, and the gradient of its loss.
#include <algorithm>

#include "base/error.h"
#include "engine/views/token_json.h"
#include "microscope/explain/loss_flow.h"
#include "microscope/intervene/head_effects.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

void require_unedited(const StoredTrace& trace, const char* what) {
  require(trace.interventions.empty(), ErrorCode::unsupported,
          "{} not support interventions; trace {} has some", what, trace.id);
}

Reply head_by_effect(State& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  require_unedited(trace, "effects of heads do");
  const std::int64_t position = position_of(request, trace);
  const HeadChoiceByEffect shown = head_to_show(trace.model().gpt, trace.pass->tokens(), position,
                                                unit_at(trace.units, position).begin, request.stop);
  return json_reply({{"position", position},
                     {"layer", shown.effect.layer},
                     {"head", shown.effect.head},
                     {"moved", json_number(shown.effect.moved)},
                     {"tried", shown.tried},
                     {"token", token_json(trace.model(), shown.effect.token)},
                     {"before", json_number(shown.effect.before)},
                     {"after", json_number(shown.effect.after)}});
}

// ?token=; by default the token that follows the position in the text, or the most likely one.
std::int32_t predicted_token(const Request& request, const StoredTrace& trace,
                             std::int64_t position) {
  if (request.parameter("token")) {
    return static_cast<std::int32_t>(
        bounded(request, "token", 0, 0, trace.specification().vocabulary_size - 1));
  }
  if (position + 1 < trace.positions()) {
    return trace.pass->tokens()[static_cast<std::size_t>(position) + 1];
  }
  const Tensor<float> logits = trace.pass->logits(position, position + 1);
  return static_cast<std::int32_t>(std::ranges::max_element(logits.span()) - logits.span().begin());
}

Reply gradients(State& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  require_unedited(trace, "gradients of the loss do");
  const std::int64_t position = position_of(request, trace);
  const std::int32_t token = predicted_token(request, trace, position);
  const LossFlow flow =
      loss_flow(trace.model().gpt, trace.pass->tokens(), token, position, request.stop);
  OrderedJson rows = OrderedJson::array();
  OrderedJson norms = OrderedJson::array();
  for (std::size_t row = 0; row < flow.points.size(); ++row) {
    rows.push_back(stream_row_name(flow.points[row]));
    OrderedJson numbers = OrderedJson::array();
    for (const float norm : flow.norms.view()[static_cast<std::int64_t>(row)].span()) {
      numbers.push_back(json_number(norm));
    }
    norms.push_back(std::move(numbers));
  }
  return json_reply({{"position", position},
                     {"token", token_json(trace.model(), token)},
                     {"loss", json_number(flow.loss)},
                     {"rows", std::move(rows)},
                     {"norms", std::move(norms)}});
}

}  // namespace

void add_effect_routes(StateRoutes& routes) {
  routes.add("GET", "/api/traces/{id}/head", head_by_effect);
  routes.add("GET", "/api/traces/{id}/gradients", gradients);
}

}  // namespace heed::server
