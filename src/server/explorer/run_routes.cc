// Training runs and their metrics, and training in the server. These handlers read files and
// settings, so they do not wait for the computing thread.
#include <chrono>
#include <memory>
#include <utility>

#include "server/explorer/live_training.h"
#include "server/explorer/metrics_file.h"
#include "server/explorer/shown_files.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds look_every{250};
constexpr std::chrono::seconds heartbeat_every{15};

Reply list_runs(const State& state) { return json_reply(state.runs.describe()); }

Reply metrics(const State& state, const Request& request) {
  const std::filesystem::path file = state.runs.metrics_file(request.in_path("name"));
  const MetricsRows read = naming_files_from(
      file.parent_path(), [&] { return read_metrics(file, request.integer("from", 0)); });
  OrderedJson rows = OrderedJson::array();
  for (const Json& row : read.rows) rows.push_back(OrderedJson(row));
  return json_reply({{"rows", std::move(rows)}, {"thinned", read.is_thinned}});
}

// New lines as events, and an `end` after the last line of a finished run.
class Watch {
 public:
  Watch(std::shared_ptr<const State> state, std::string run, MetricsReader reader, StopFlag stop)
      : state_(std::move(state)), run_(std::move(run)), reader_(std::move(reader)), stop_(stop) {}

  // Writes what is new; returns whether it is to look again. It is not when the client
  // disconnected.
  bool look(StreamWriter& writer) {
    if (!begun_ && !writer.write(": watching\n\n")) return false;
    begun_ = true;
    if (stop_requested(stop_)) return false;
    const bool finished = state_->runs.is_finished(run_);  // before its lines are read: all of them
    for (auto rows = reader_.read_new(); !rows.empty() && !stop_requested(stop_);
         rows = reader_.read_new()) {
      for (const Json& row : rows) {
        if (!writer.write(server_sent_event(OrderedJson(row), "metrics"))) return false;
      }
      last_word_ = Clock::now();
    }
    if (finished) {
      writer.write(server_sent_event({{"run", run_}}, "end"));
      return false;
    }
    if (Clock::now() - last_word_ >= heartbeat_every) {
      if (!writer.write(": heartbeat\n\n")) return false;
      last_word_ = Clock::now();
    }
    writer.wait(look_every);
    return true;
  }

 private:
  const std::shared_ptr<const State> state_;
  const std::string run_;
  MetricsReader reader_;
  const StopFlag stop_;
  Clock::time_point last_word_ = Clock::now();
  bool begun_ = false;
};

Reply events(const std::shared_ptr<State>& state, const Request& request) {
  const std::string run = request.in_path("name");
  state->runs.is_finished(run);  // refuses one that cannot be read before the stream begins
  const std::filesystem::path file = state->runs.metrics_file(run);
  MetricsReader reader(file);
  naming_files_from(file.parent_path(), [&] { reader.skip_to_end(); });
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.headers.emplace_back("Cache-Control", "no-store");
  const auto watch = std::make_shared<Watch>(state, run, std::move(reader), request.stop);
  reply.stream = [watch](StreamWriter& writer) { return watch->look(writer); };
  return reply;
}

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

void add_run_routes(StateRoutes& routes) {
  const auto state = routes.state();
  Router& router = routes.router();
  router.add("GET", "/api/runs", [state](const Request&) { return list_runs(*state); });
  router.add("GET", "/api/runs/{name}/metrics",
             [state](const Request& request) { return metrics(*state, request); });
  router.add("GET", "/api/runs/{name}/events",
             [state](const Request& request) { return events(state, request); });
}

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
