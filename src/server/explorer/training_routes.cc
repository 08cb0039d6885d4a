// Training in the server: its state, and what the page asks of it. These handlers do not wait for
// the computing thread.
#include "server/explorer/live_training.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

using Action = void (LiveTraining::*)();

void add_action(StateRoutes& routes, const std::string& path, Action action) {
  routes.router().add("POST", path, [state = routes.state(), action](const Request& request) {
    const Json body = request.json();
    Fields(body).expect_only({});
    ((*state->training).*action)();
    return json_reply(state->training->describe());
  });
}

Reply start(State& state, const Request& request) {
  state.training->start(request.json());
  Reply reply = json_reply(state.training->describe());
  reply.status = 201;
  return reply;
}

Reply change_learning_rate(State& state, const Request& request) {
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"factor"});
  const auto factor = fields.number("factor", 0.01, 10);
  require(factor.has_value(), ErrorCode::invalid_argument, "the request has no \"factor\"");
  state.training->set_learning_rate_factor(*factor);
  return json_reply(state.training->describe());
}

}  // namespace

void add_training_routes(StateRoutes& routes) {
  const auto state = routes.state();
  Router& router = routes.router();
  router.add("GET", "/api/training",
             [state](const Request&) { return json_reply(state->training->describe()); });
  router.add("POST", "/api/training",
             [state](const Request& request) { return start(*state, request); });
  router.add("POST", "/api/training/learning_rate",
             [state](const Request& request) { return change_learning_rate(*state, request); });
  add_action(routes, "/api/training/pause", &LiveTraining::pause);
  add_action(routes, "/api/training/resume", &LiveTraining::resume);
  add_action(routes, "/api/training/stop", &LiveTraining::stop);
}

}  // namespace heed::server
