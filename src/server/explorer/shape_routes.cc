// What the shape of a model means: its parameters, presets, and training on a cluster: memory, time
// and efficiency. A query describes the shape.
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "engine/bench/training_rates.h"
#include "engine/plan/plan_report.h"
#include "engine/views/report_json.h"
#include "model/parameter_count.h"
#include "model/presets.h"
#include "server/explorer/model_json.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

bool truth(const Request& request, const std::string& name, bool fallback) {
  const std::string word =
      one_of(request, name, {fallback ? "true" : "false", "true", "false", "1", "0"});
  return word == "true" || word == "1";
}

constexpr const char* shape_parameters[] = {
    "layers",       "heads",      "key_value_heads", "channels", "head_size",
    "feed_forward", "vocabulary", "context",         "tied",     "bias",
    "gated",        "norm",       "positions",       "residual"};

// Upper limits of the sizes, so that their products stay below 2^63.
constexpr std::int64_t max_layers = 10000;
constexpr std::int64_t max_width = 1 << 20;
constexpr std::int64_t max_rows = std::int64_t{1} << 24;

// ?gated=, ?norm=, ?positions= and ?residual=; by default the model's own.
void describe_block(const Request& request, BlockSpecification& block) {
  block.feed_forward.gated = truth(request, "gated", block.feed_forward.gated);
  const bool is_rms =
      one_of(request, "norm",
             {block.norm.kind == NormKind::rms ? "rms" : "layer", "layer", "rms"}) == "rms";
  block.norm.kind = is_rms ? NormKind::rms : NormKind::layer;
  if (is_rms) block.norm.bias = false;
  const std::string residual =
      one_of(request, "residual",
             {block.residual == ResidualKind::parallel ? "parallel" : "sequential", "sequential",
              "parallel"});
  block.residual = residual == "parallel" ? ResidualKind::parallel : ResidualKind::sequential;
  if (!request.parameter("positions")) return;
  const std::string positions =
      one_of(request, "positions", {"learned", "learned", "rotary", "none"});
  block.attention.positions = positions == "rotary"    ? PositionKind::rotary
                              : positions == "learned" ? PositionKind::learned
                                                       : PositionKind::none;
}

// ?config=, a preset; else the shape of the model of ?model=, changed by ?layers=, ?heads= and so
// on. `name` is set to what the shape is called. Throws Error{not_found} and
// Error{invalid_argument}.
StackSpecification shape_of(State& state, const Request& request, std::string& name) {
  if (const auto preset = request.parameter("config")) {
    name = *preset;
    return model_preset(*preset).config;
  }
  const ChosenModel chosen = state.model_of(request);
  StackSpecification config = chosen.model->transformer.specification();
  name = chosen.model->name;
  if (std::ranges::none_of(shape_parameters,
                           [&](const char* each) { return request.parameter(each).has_value(); })) {
    return config;
  }
  name = "shape";
  config.layers = bounded(request, "layers", config.layers, 1, max_layers);
  AttentionSpecification& attention = config.block.attention;
  const std::int64_t heads = bounded(request, "heads", config.heads(), 1, max_width);
  attention.key_value_heads =
      bounded(request, "key_value_heads",
              heads == config.heads() ? config.key_value_heads() : heads, 1, max_width);
  attention.query_heads = heads;
  require(heads % attention.key_value_heads == 0, ErrorCode::invalid_argument,
          "{} query heads cannot share {} key/value heads evenly", heads,
          attention.key_value_heads);
  config.channels = bounded(request, "channels", config.channels, 1, max_width);
  const std::int64_t head_size = std::max<std::int64_t>(config.channels / config.heads(), 1);
  config.block.attention.head_size = bounded(request, "head_size", head_size, 1, max_width);
  config.block.feed_forward.width =
      bounded(request, "feed_forward", 4 * config.channels, 1, 8 * max_width);
  config.vocabulary_size = bounded(request, "vocabulary", config.vocabulary_size, 1, max_rows);
  config.context = bounded(request, "context", config.context, 1, max_rows);
  config.tied_unembedding = truth(request, "tied", config.tied_unembedding);
  describe_block(request, config.block);
  if (request.parameter("bias")) {
    set_biases(config, truth(request, "bias", true) ? Biases::all : Biases::none);
  }
  // A window for each layer would have to follow their number.
  if (std::ssize(attention.mask.windows) != config.layers) attention.mask = {};
  config.end_of_text = -1;
  require(config.heads() * config.head_size() <= 8 * max_width, ErrorCode::invalid_argument,
          "{} heads of {} are wider than {}", config.heads(), config.head_size(), 8 * max_width);
  return config;
}

OrderedJson parts_json(const ParameterCount& count) {
  OrderedJson parts = OrderedJson::array();
  const auto add = [&](const char* name, std::int64_t parameters) {
    parts.push_back({{"name", name},
                     {"parameters", parameters},
                     {"share", static_cast<double>(parameters) /
                                   static_cast<double>(std::max<std::int64_t>(count.total, 1))}});
  };
  add("embedding", count.embedding);
  add("position", count.position);
  add("attention", count.attention_total);
  add("feed_forward", count.feed_forward_total);
  add("biases", count.biases);
  add("norms", count.norms);
  add("unembedding", count.unembedding);
  return parts;
}

Reply parameters(State& state, const Request& request) {
  std::string name;
  const StackSpecification config = shape_of(state, request, name);
  OrderedJson document = parameter_count_json(name, config);
  document["parts"] = parts_json(count_parameters(config));
  return json_reply(document);
}

Reply presets(State&, const Request&) {
  OrderedJson list = OrderedJson::array();
  for (const ModelPreset& preset : model_presets()) {
    OrderedJson shape = dimensions_json(preset.config);
    shape.erase("parameters");
    shape["tied"] = preset.config.tied_unembedding;
    shape["bias"] = has_biases(preset.config);
    list.push_back({{"name", preset.name},
                    {"description", preset.description},
                    {"config", std::move(shape)},
                    {"parameters", count_parameters(preset.config).total}});
  }
  return json_reply({{"presets", std::move(list)}});
}

// A published run's, so that shapes of the page that nobody trained have settings, too.
constexpr const char* standard_settings = "gpt2";

TrainSettings settings_of(State& state, const Request& request, std::string& name) {
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

void add_shape_routes(StateRoutes& routes) {
  routes.add("GET", "/api/parameters", parameters);
  routes.add("GET", "/api/presets", presets);
  routes.add("GET", "/api/plan", plan);
}

}  // namespace heed::server
