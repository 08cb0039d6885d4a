// Training runs, as they are and as they go on.
#include <chrono>
#include <thread>

#include "server/explorer/state.h"

namespace heed::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds look_every{250};
constexpr std::chrono::seconds heartbeat_every{15};

Reply list_runs(const State& state) { return json_reply(state.runs.describe()); }

Reply metrics(const State& state, const Request& request) {
  const std::int64_t from = request.integer("from", 0);
  OrderedJson rows = OrderedJson::array();
  MetricsReader reader(state.runs.metrics_file(request.in_path("name")));
  for (const Json& row : reader.read_new()) {
    const auto step = row.find("step");
    if (step != row.end() && step->is_number_integer() && step->get<std::int64_t>() < from)
      continue;
    rows.push_back(OrderedJson(row));
  }
  return json_reply({{"rows", std::move(rows)}});
}

// Lines that are written from now on, as events, and an `end` behind the last of a finished run.
// Ends too when nobody listens.
void watch(const Runs& runs, const std::string& run, MetricsReader reader, StopFlag stop,
           StreamWriter& writer) {
  auto last_word = Clock::now();
  while (!stop_requested(stop)) {
    const bool finished = runs.is_finished(run);  // before its lines are read: then these are all
    for (const Json& row : reader.read_new()) {
      if (!writer.write(server_sent_event(OrderedJson(row), "metrics"))) return;
      last_word = Clock::now();
    }
    if (finished) {
      writer.write(server_sent_event({{"run", run}}, "end"));
      return;
    }
    if (Clock::now() - last_word >= heartbeat_every) {
      if (!writer.write(": still here\n\n")) return;
      last_word = Clock::now();
    }
    std::this_thread::sleep_for(look_every);
  }
}

Reply events(const std::shared_ptr<State>& state, const Request& request) {
  const std::string run = request.in_path("name");
  state->runs.is_finished(run);  // refuses one that cannot be read before the stream begins
  MetricsReader reader(state->runs.metrics_file(run));
  reader.read_new();  // what is there already is asked for as metrics
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.headers.emplace_back("Cache-Control", "no-store");
  reply.stream = [state, run, reader, stop = request.stop](StreamWriter& writer) {
    if (!writer.write(": watching\n\n")) return;
    watch(state->runs, run, reader, stop, writer);
  };
  return reply;
}

}  // namespace

// They read files and compute nothing, so that they need no turn.
void add_run_routes(StateRoutes& routes) {
  const auto state = routes.state();
  Router& router = routes.router();
  router.add("GET", "/api/runs", [state](const Request&) { return list_runs(*state); });
  router.add("GET", "/api/runs/{name}/metrics",
             [state](const Request& request) { return metrics(*state, request); });
  router.add("GET", "/api/runs/{name}/events",
             [state](const Request& request) { return events(state, request); });
}

}  // namespace heed::server
