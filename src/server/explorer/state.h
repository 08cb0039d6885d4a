// State shared by the explorer's handlers: used on the computing thread only, but for `runs` and
// `training`, which any thread may use.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/plan/scaling_plan.h"
#include "model/input_checks.h"
#include "server/context.h"
#include "server/explorer/live_training.h"
#include "server/explorer/model_pool.h"
#include "server/explorer/options.h"
#include "server/explorer/runs.h"
#include "server/explorer/trace_store.h"
#include "server/router.h"

namespace heed::server {

struct State {
  State(Context& shared, const ExplorerOptions& chosen)
      : context(shared),
        options(chosen),
        runs(chosen.runs),
        models(shared.model, runs),
        traces(chosen.trace_budget),
        rates(chosen.rates),
        training(std::make_unique<LiveTraining>(shared.compute, runs, options)) {
    if (!chosen.recorded_run.empty()) runs.add(chosen.recorded_run, RunOrigin::recorded);
    if (!chosen.live_runs.empty()) runs.add_live_runs(chosen.live_runs);
  }

  Context& context;
  ExplorerOptions options;
  Runs runs;
  ModelPool models;
  TraceStore traces;
  std::map<std::string, std::string> neuron_contexts;  // documents by "layer/neuron/top"
  std::map<std::string, TrainingRates> rates;          // of this machine, by precision
  std::unique_ptr<LiveTraining> training;
};

using StateHandler = Reply (*)(State&, const Request&);

// Adds routes whose handlers run on the computing thread.
class StateRoutes {
 public:
  StateRoutes(Router& router, std::shared_ptr<State> state)
      : router_(router), state_(std::move(state)) {}

  void add(const std::string& method, const std::string& pattern, StateHandler handler) {
    router_.add(method, pattern, [state = state_, handler](const Request& request) {
      return state->context.compute.run(request.stop, [&] { return handler(*state, request); });
    });
  }

  Router& router() { return router_; }
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  Router& router_;
  std::shared_ptr<State> state_;
};

// One for each group of endpoints.
void add_model_routes(StateRoutes& routes);
void add_plan_routes(StateRoutes& routes);
void add_trace_routes(StateRoutes& routes);
void add_attention_routes(StateRoutes& routes);
void add_prediction_routes(StateRoutes& routes);
void add_explanation_routes(StateRoutes& routes);
void add_effect_routes(StateRoutes& routes);
void add_weight_routes(StateRoutes& routes);
void add_neuron_routes(StateRoutes& routes);
void add_vector_routes(StateRoutes& routes);
void add_derivation_routes(StateRoutes& routes);
void add_figure_routes(StateRoutes& routes);
void add_generation_routes(StateRoutes& routes);
void add_run_routes(StateRoutes& routes);
void add_training_routes(StateRoutes& routes);

// The trace with the id in the path.
StoredTrace& trace_of(State& state, const Request& request);

// ?position=, −1 being the last. Throws Error{invalid_argument}.
std::int64_t position_of(const Request& request, const StoredTrace& trace,
                         std::int64_t fallback = -1);
std::int64_t checked_position(std::int64_t position, const StoredTrace& trace);

// "3_pre", "final_post": a point of the residual stream as a row of a grid.
std::string stream_row_name(const Point& point);

// "0-3,7,-1" as 0, 1, 2, 3, 7, -1; empty for an empty text. Throws Error{invalid_argument}.
std::vector<std::int64_t> index_list(const Request& request, const std::string& name);

// ?NAME= as a bounded number. Throws Error{invalid_argument}.
std::int64_t bounded(const Request& request, const std::string& name, std::int64_t fallback,
                     std::int64_t least, std::int64_t most);

// ?NAME= as one of the given words, the first by default. Throws Error{invalid_argument}.
std::string one_of(const Request& request, const std::string& name,
                   const std::vector<std::string>& words);

}  // namespace heed::server
