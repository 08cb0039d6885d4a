// State shared by the explorer's handlers: used on the computing thread only, but for `runs`,
// `training` and `downloads`, which any thread may use, as ModelPool::loaded().
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/plan/scaling_plan.h"
#include "model/input_checks.h"
#include "server/context.h"
#include "server/explorer/downloads.h"
#include "server/explorer/live_training.h"
#include "server/explorer/model_pool.h"
#include "server/explorer/options.h"
#include "server/explorer/runs.h"
#include "server/explorer/trace_store.h"
#include "server/router.h"

namespace heed {
struct StoryProbe;  // microworld/checks/story_probe.h
}  // namespace heed

namespace heed::server {

// What traces are made with. A server holds a model of one text, a translator, or both.
struct TraceState {
  Compute& compute;
  TraceStore traces;
  ModelPool* models = nullptr;                                            // of one text; null: none
  std::function<std::shared_ptr<const LoadedModel>()> load_translator{};  // empty: none
  std::shared_ptr<const LoadedModel> translator{};  // loaded when it is first needed
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  // Throw Error{not_found} where the server has none.
  ChosenModel explored_model() const;
  ChosenModel held_translator();
};

struct MeasuredWord;  // see sense_routes.cc

struct State : TraceState {
  State(Context& shared, const ExplorerOptions& chosen)
      : TraceState{.compute = shared.compute,
                   .traces = TraceStore(chosen.trace_budget),
                   .started = shared.started},
        context(shared),
        options(chosen),
        runs(chosen.runs),
        pool(PoolOf{.explored = shared.model,
                    .name = shared.name,
                    .aliases = shared.aliases,
                    .runs = runs,
                    .traces = traces,
                    .budget = chosen.model_budget}),
        rates(chosen.rates),
        training(std::make_unique<LiveTraining>(shared.compute, runs, options)),
        downloads(std::make_unique<Downloads>(options)) {
    models = &pool;
    if (!chosen.recorded_run.empty()) runs.add(chosen.recorded_run, RunOrigin::recorded);
    if (!chosen.live_runs.empty()) runs.add_live_runs(chosen.live_runs);
  }

  // The model that the query names (?model=), or the explored one. Throws as ModelPool::named.
  ChosenModel model_of(const Request& request) {
    return pool.named(request.parameter("model").value_or(""));
  }

  Context& context;
  ExplorerOptions options;
  Runs runs;
  ModelPool pool;
  std::map<std::string, std::string> neuron_contexts;  // documents by "layer/neuron/top/model"
  std::map<std::string, std::shared_ptr<const MeasuredWord>> measured_words;  // by "word/model"
  std::shared_ptr<const StoryProbe> culprit_probe;  // trained when it is first needed
  std::map<std::string, TrainingRates> rates;       // of this machine, by precision
  std::unique_ptr<LiveTraining> training;
  std::unique_ptr<Downloads> downloads;
};

// Adds routes whose handlers run on the computing thread.
template <class HandlerState>
class RoutesOf {
 public:
  using StateHandler = Reply (*)(HandlerState&, const Request&);

  RoutesOf(Router& router, std::shared_ptr<HandlerState> state)
      : router_(router), state_(std::move(state)) {}

  void add(const std::string& method, const std::string& pattern, StateHandler handler) {
    router_.add(method, pattern, [state = state_, handler](const Request& request) {
      return state->compute.run(request.stop, [&] { return handler(*state, request); });
    });
  }

  Router& router() { return router_; }
  const std::shared_ptr<HandlerState>& state() const { return state_; }

 private:
  Router& router_;
  std::shared_ptr<HandlerState> state_;
};
using StateRoutes = RoutesOf<State>;
using TraceRoutes = RoutesOf<TraceState>;

// One for each group of endpoints: of traces, and of all the rest.
void add_trace_routes(TraceRoutes& routes);
void add_attention_routes(TraceRoutes& routes);
void add_prediction_routes(TraceRoutes& routes);
void add_explanation_routes(TraceRoutes& routes);
void add_vector_routes(TraceRoutes& routes);
void add_neuron_routes(TraceRoutes& routes);
void add_cause_routes(TraceRoutes& routes);
void add_figure_routes(TraceRoutes& routes);
void add_translation_routes(TraceRoutes& routes);
void add_model_routes(StateRoutes& routes);
void add_choice_routes(StateRoutes& routes);
void add_shape_routes(StateRoutes& routes);
void add_weight_routes(StateRoutes& routes);
void add_neuron_routes(StateRoutes& routes);
void add_feature_routes(StateRoutes& routes);
void add_sense_routes(StateRoutes& routes);
void add_probe_routes(StateRoutes& routes);
void add_generation_routes(StateRoutes& routes);
void add_run_routes(StateRoutes& routes);
void add_training_routes(StateRoutes& routes);

// The trace with the id in the path.
StoredTrace& trace_of(TraceState& state, const Request& request);
// The same where it is of one text, or of two; `what` begins the message about another. Throw
// Error{unsupported}.
StoredTrace& one_text_of(TraceState& state, const Request& request, std::string_view what);
StoredTrace& two_texts_of(TraceState& state, const Request& request, std::string_view what);

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
