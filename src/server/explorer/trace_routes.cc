// Traces: create, list, export as arrays, delete.
#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "engine/documents.h"
#include "engine/token_json.h"
#include "microscope/attention/head_scan.h"
#include "microscope/traces/activation_trace.h"
#include "model/input_checks.h"
#include "server/explorer/array_reply.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/intervention_json.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

ChosenModel chosen_model(State& state, const Fields& fields, const StoredTrace* base) {
  if (!fields.has("model")) return base != nullptr ? base->source : state.models.explored();
  const Fields wanted = fields.required_object("model");
  wanted.expect_only({"run", "step", "name"});
  if (!wanted.has("run")) return state.models.explored();
  return state.models.checkpoint(wanted.required_string("run"), wanted.required_integer("step"));
}

TraceStore::NewTrace read_trace(State& state, const Request& request) {
  const MemoryBudget::Share in_flight = share_of_document(state.traces, request.body, 't');
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"text", "tokens", "interventions", "model", "base"});
  const auto base_id = fields.string("base");
  StoredTrace* const base = base_id ? &state.traces.use(*base_id) : nullptr;
  TraceStore::NewTrace wanted{.source = chosen_model(state, fields, base)};
  const LoadedModel& model = *wanted.source.model;
  if (fields.has("tokens")) {
    require(!fields.has("text"), ErrorCode::invalid_argument, "give \"text\" or \"tokens\"");
    wanted.tokens = fields.required_token_ids("tokens", model.gpt.specification().vocabulary_size);
  } else if (fields.has("text")) {
    wanted.tokens = model.encode(fields.required_string("text"));
  } else {
    require(base != nullptr, ErrorCode::invalid_argument,
            "the request has none of \"text\", \"tokens\" and \"base\"");
    wanted.tokens.assign(base->pass->tokens().begin(), base->pass->tokens().end());
  }
  if (base != nullptr) wanted.base = base->id;
  const StackSpecification& config = model.gpt.specification();
  require_text_fits(config, wanted.tokens);
  state.traces.require_room(config, std::ssize(wanted.tokens));
  if (fields.has("interventions")) {
    const Json& list = fields.required_list("interventions");
    const std::size_t kept = state.traces.keep(passes_named_in(list));
    const auto take = [&](std::int64_t bytes) { state.traces.take(wanted.held, bytes, kept); };
    wanted.interventions = requested_list(list);
    take(wanted.interventions.bytes());
    wanted.editor = read_interventions(list, {.gpt = model.gpt,
                                              .tokens = wanted.tokens,
                                              .traces = state.traces,
                                              .last_position = std::ssize(wanted.tokens) - 1,
                                              .take_memory = take,
                                              .stop = request.stop});
  }
  return wanted;
}

Reply make_trace(State& state, const Request& request) {
  TraceStore::NewTrace wanted = read_trace(state, request);
  if (request.body.size() >= large_document)
    return_free_memory();  // of the document, in small blocks
  const std::string id = state.traces.add(std::move(wanted), request.stop).id;
  return text_reply(trace_text(state.traces.use(id)) + "\n", "application/json");
}

// The list of all, as JSON.
std::string all_traces(const State& state) {
  std::string list;
  for (const StoredTrace& trace : state.traces.all()) {
    list += (list.empty() ? "" : ",") + trace_text(trace);
  }
  return "[" + list + "]";
}

Reply list_traces(State& state, const Request&) {
  return text_reply("{\"traces\":" + all_traces(state) + "}\n", "application/json");
}

Reply describe_trace(State& state, const Request& request) {
  return text_reply(trace_text(trace_of(state, request)) + "\n", "application/json");
}

Reply drop_trace(State& state, const Request& request) {
  state.traces.remove(request.in_path("id"));
  return json_reply({{"deleted", request.in_path("id")}});
}

Reply status(State& state, const Request&) {
  const std::chrono::duration<double> uptime =
      std::chrono::steady_clock::now() - state.context.started;
  const std::string traces = all_traces(state);
  const OrderedJson document{{"traces", nullptr},
                             {"trace_bytes", state.traces.bytes()},
                             {"trace_budget", state.traces.budget()},
                             {"uptime_seconds", uptime.count()},
                             {"requests_processing", state.context.compute.waiting() + 1}};
  return text_reply(with_member(document, "traces", traces) + "\n", "application/json");
}

Reply take_array(State& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const std::string& point = request.in_path("point");
  require(point.find('*') == std::string::npos && !asks_for_gradients({.points = {point}}),
          ErrorCode::invalid_argument, "'{}' is not a single point", point.substr(0, 80));
  const TraceRequest wanted{.points = {point},
                            .layers = index_list(request, "layers"),
                            .heads = index_list(request, "heads"),
                            .positions = index_list(request, "positions")};
  ActivationTrace taken(trace.pass->architecture(), wanted, {.positions = trace.positions()});
  trace.pass->replay(taken);
  const Trace arrays = taken.take();
  require(arrays.arrays.size() == 1, ErrorCode::invalid_argument,
          "'{}' is a point of {} layers: name one, such as {}", point.substr(0, 80),
          arrays.arrays.size(), arrays.arrays.front().name);
  const TracedArray& array = arrays.arrays.front();
  return array_reply(request, {.shape = array.shape, .values = array.values, .name = array.name});
}

Reply head_table(State& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  OrderedJson heads = OrderedJson::array();
  for (const RankedHead& head : scan_heads(*trace.pass, {}, request.stop).all()) {
    heads.push_back(head_statistics_json(head));
  }
  return json_reply({{"heads", std::move(heads)}});
}

}  // namespace

void add_trace_routes(StateRoutes& routes) {
  routes.add("POST", "/api/traces", make_trace);
  routes.add("GET", "/api/traces", list_traces);
  routes.add("GET", "/api/status", status);
  routes.add("GET", "/api/traces/{id}", describe_trace);
  routes.add("DELETE", "/api/traces/{id}", drop_trace);
  routes.add("GET", "/api/traces/{id}/arrays/{point}", take_array);
  routes.add("GET", "/api/traces/{id}/heads", head_table);
}

}  // namespace heed::server
