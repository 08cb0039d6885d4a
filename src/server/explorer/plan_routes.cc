// Training on a cluster: memory, time and efficiency of the shape that the query describes.
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "engine/bench/training_rates.h"
#include "engine/plan/plan_report.h"
#include "server/explorer/shape_query.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

// A published run's, so that shapes of the page that nobody trained have settings, too.
constexpr const char* standard_settings = "gpt2";

TrainSettings settings_of(const State& state, const Request& request, std::string& name) {
  const StackSpecification shape = shape_of(state, request, name);
  const bool is_preset = request.parameter("config").has_value();
  TrainSettings settings = planned_settings(is_preset ? name : standard_settings);
  settings.model = shape;
  settings.sequence_length = bounded(request, "sequence_length", shape.context, 1, shape.context);
  if (request.parameter("sequences")) {
    settings.batch_size = bounded(request, "sequences", 1, 1, 1 << 16);
    settings.accumulation = 1;
  }
  settings.recompute = truth(request, "recompute", false);
  settings.precision = one_of(request, "dtype", {"f32", "f32", "bf16"}) == "bf16"
                           ? kernels::Precision::bf16
                           : kernels::Precision::f32;
  return settings;
}

Cluster cluster_of(const Request& request) {
  const Cluster usual;
  return {.nodes = request.integer("nodes", usual.nodes),
          .processes_per_node = request.integer("processes_per_node", usual.processes_per_node),
          .cores_per_node = request.number("cores", usual.cores_per_node),
          .memory_per_node = request.number("memory", usual.memory_per_node),
          .bandwidth = request.number("bandwidth", usual.bandwidth),
          .latency = request.number("latency", usual.latency),
          .price_per_node_hour = request.number("price", usual.price_per_node_hour)};
}

Distribution distribution_of(const Request& request) {
  return {.shard = static_cast<int>(bounded(request, "shard", 1, 1, 3)),
          .wire = one_of(request, "wire", {"f32", "f32", "bf16"}) == "bf16"
                      ? Distribution::Wire::bf16
                      : Distribution::Wire::f32,
          .sequence_parallel = request.integer("sequence_parallel", 1),
          .exchange = one_of(request, "exchange", {"during", "after"}) == "during"
                          ? Distribution::Exchange::during_backward
                          : Distribution::Exchange::after_backward};
}

// Of one core of this machine at blocks of GPT-2, measured once in about a second.
const TrainingRates& rates_here(State& state, kernels::Precision precision) {
  const std::string name = precision == kernels::Precision::bf16 ? "bf16" : "f32";
  const auto known = state.rates.find(name);
  if (known != state.rates.end()) return known->second;
  TrainSettings settings = planned_settings(standard_settings);
  settings.precision = precision;
  settings.sequence_length = 128;
  const RateMeasurement measurement{.sequences = 1, .pass_flops = 1e9, .seconds = 0.2};
  return state.rates.emplace(name, measure_training_rates(settings, measurement)).first->second;
}

Reply plan(State& state, const Request& request) {
  PlanRequest asked;
  asked.settings = settings_of(state, request, asked.name);
  asked.cluster = cluster_of(request);
  asked.distribution = distribution_of(request);
  asked.tokens = request.number("tokens", usual_tokens(asked.name, asked.settings));
  const bool has_rates = request.parameter("flops") && request.parameter("read");
  TrainingRates rates = has_rates ? TrainingRates() : rates_here(state, *asked.settings.precision);
  if (request.parameter("flops")) {
    rates = TrainingRates::uniform(request.number("flops", 0), rates.memory);
  }
  rates.memory = request.number("read", rates.memory);
  rates.copies = request.number("copies", 0);
  asked.rates = rates;
  return json_reply(plan_report_json(make_plan_report(asked)));
}

}  // namespace

void add_plan_routes(StateRoutes& routes) { routes.add("GET", "/api/plan", plan); }

}  // namespace heed::server
