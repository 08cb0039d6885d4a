// Traces of one text, or of a source and a target: create, list, export as arrays, delete.
#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "engine/edits.h"
#include "microscope/traces/activation_trace.h"
#include "server/explorer/array_reply.h"
#include "server/explorer/intervention_json.h"
#include "server/explorer/state.h"
#include "server/fields.h"
#include "server/place.h"

namespace heed::server {
namespace {

bool names_two_texts(const Fields& fields) {
  return fields.has("source") || fields.has("source_tokens") || fields.has("target") ||
         fields.has("target_tokens");
}

// "model": a name, or what the model of a trace is: {"name"}, or {"run", "step"} of a checkpoint.
std::optional<ChosenModel> named_model(TraceState& state, const Json& body, const Fields& fields) {
  if (!fields.has("model")) return std::nullopt;
  state.explored_model();  // a server without one of one text has no others
  if (body.at("model").is_string()) return state.models->named(fields.required_string("model"));
  const Fields wanted = fields.required_object("model");
  wanted.expect_only({"run", "step", "name"});
  if (!wanted.has("run")) return state.models->named(wanted.string("name").value_or(""));
  return state.models->checkpoint(wanted.required_string("run"), wanted.required_integer("step"));
}

bool names_a_run(const Json& body) {
  const auto model = body.find("model");
  return model != body.end() && model->is_object() && model->contains("run") &&
         !model->at("run").is_null();
}

ChosenModel chosen_model(TraceState& state, const Json& body, const StoredTrace* base) {
  const Fields fields(body);
  const bool has_one_text = fields.has("text") || fields.has("tokens");
  const bool has_two_texts = names_two_texts(fields);
  require(!has_one_text || !has_two_texts, ErrorCode::invalid_argument,
          "a trace is of one \"text\", or of a \"source\" and a \"target\"");
  const bool is_of_two = has_two_texts || (!has_one_text && base && base->has_two_texts());
  if (is_of_two) {
    require(
        !names_a_run(body), ErrorCode::unsupported,
        "checkpoints of runs read one text; a source and a target need the server's translator");
    return state.held_translator();
  }
  if (auto named = named_model(state, body, fields)) return *std::move(named);
  const bool follows_base = base != nullptr && !base->has_two_texts();
  return follows_base ? base->source : state.explored_model();
}

// A text of the request or, without one, nothing.
std::optional<std::vector<std::int32_t>> read_tokens(
    const Fields& fields, const char* text, const char* ids, std::int64_t vocabulary,
    const std::function<std::vector<std::int32_t>(const std::string&)>& encode) {
  if (fields.has(ids)) {
    require(!fields.has(text), ErrorCode::invalid_argument, "give \"{}\" or \"{}\"", text, ids);
    return fields.required_token_ids(ids, vocabulary);
  }
  if (fields.has(text)) return encode(fields.required_string(text));
  return std::nullopt;
}

void read_one_text(const Fields& fields, const StoredTrace* base, TraceStore::NewTrace& wanted) {
  const LoadedModel& model = *wanted.source.model;
  const StackSpecification& stack = model.transformer.specification();
  auto tokens = read_tokens(fields, "text", "tokens", stack.vocabulary_size,
                            [&](const std::string& text) { return model.encode(text); });
  require(tokens || base != nullptr, ErrorCode::invalid_argument,
          "the request has none of \"text\", \"tokens\", \"source\" and \"base\"");
  if (!tokens) {
    const std::span<const std::int32_t> same = base->tokens(PairSide::target);
    tokens.emplace(same.begin(), same.end());
  }
  wanted.texts.target = *std::move(tokens);
  require_text_fits(stack, wanted.texts.target);
}

// Without a target: the model's own translation, or with the texts of another trace its target.
void read_two_texts(const Fields& fields, const StoredTrace* base, StopFlag stop,
                    TraceStore::NewTrace& wanted) {
  const LoadedModel& model = *wanted.source.model;
  const Architecture& architecture = model.architecture();
  auto source =
      read_tokens(fields, "source", "source_tokens", architecture.encoder().vocabulary_size,
                  [&](const std::string& text) { return model.encode_source(text); });
  auto target =
      read_tokens(fields, "target", "target_tokens", architecture.decoder().vocabulary_size,
                  [&](const std::string& text) { return model.encode_target(text); });
  const bool has_base = base != nullptr && base->has_two_texts();
  require(source || has_base, ErrorCode::invalid_argument,
          "the request has a target and none of \"source\", \"source_tokens\" and \"base\"");
  if (!source && !target) {
    wanted.texts = base->pass->texts();
    wanted.is_translation = base->is_translation;
  } else if (!target) {
    ModelTexts translated = translated_pair(model, *std::move(source), stop);
    wanted.texts = std::move(translated.tokens);
    wanted.is_translation = translated.is_translation;
  } else {
    wanted.texts = {.source = source ? *std::move(source) : base->pass->texts().source,
                    .target = *std::move(target)};
  }
  require_texts_fit(architecture, wanted.texts);
}

TraceStore::NewTrace read_trace(TraceState& state, const Request& request) {
  const MemoryBudget::Share in_flight = share_of_document(state.traces, request.body, 't');
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"text", "tokens", "source", "source_tokens", "target", "target_tokens",
                      "interventions", "model", "base"});
  const auto base_id = fields.string("base");
  const StoredTrace* const base = base_id ? &state.traces.use(*base_id) : nullptr;
  // Held, so that the base stays while another model is loaded.
  const ChosenModel of_base = base != nullptr ? base->source : ChosenModel{};
  TraceStore::NewTrace wanted{.source = chosen_model(state, body, base)};
  if (wanted.source.model->is_translator()) {
    read_two_texts(fields, base, request.stop, wanted);
  } else {
    read_one_text(fields, base, wanted);
  }
  if (base != nullptr) wanted.base = base->id;
  state.traces.require_room(wanted.source.model->architecture(), std::ssize(wanted.texts.target),
                            std::ssize(wanted.texts.source));
  if (fields.has("interventions")) {
    const Json& list = fields.required_list("interventions");
    const std::size_t kept = state.traces.keep(passes_named_in(list));
    const auto take = [&](std::int64_t bytes) { state.traces.take(wanted.held, bytes, kept); };
    wanted.interventions = requested_list(list);
    take(wanted.interventions.bytes());
    wanted.editor = read_interventions(
        list, {.model = wanted.source.model->transformer,
               .texts = wanted.texts,
               .recorded =
                   [&](const std::string& id) {
                     return recorded_text(state.traces, id, wanted.source.model->architecture());
                   },
               .words = words_of(*wanted.source.model),
               .take_memory = take,
               .stop = request.stop});
  }
  return wanted;
}

Reply make_trace(TraceState& state, const Request& request) {
  TraceStore::NewTrace wanted = read_trace(state, request);
  if (request.body.size() >= large_document)
    return_free_memory();  // of the document, in small blocks
  const std::string id = state.traces.add(std::move(wanted), request.stop).id;
  return text_reply(trace_text(state.traces.use(id)) + "\n", "application/json");
}

// The list of all, as JSON.
std::string all_traces(const TraceState& state) {
  std::string list;
  for (const StoredTrace& trace : state.traces.all()) {
    list += (list.empty() ? "" : ",") + trace_text(trace);
  }
  return "[" + list + "]";
}

Reply list_traces(TraceState& state, const Request&) {
  return text_reply("{\"traces\":" + all_traces(state) + "}\n", "application/json");
}

Reply describe_trace(TraceState& state, const Request& request) {
  return text_reply(trace_text(trace_of(state, request)) + "\n", "application/json");
}

Reply drop_trace(TraceState& state, const Request& request) {
  state.traces.remove(request.in_path("id"));
  return json_reply({{"deleted", request.in_path("id")}});
}

Reply status(TraceState& state, const Request&) {
  const std::chrono::duration<double> uptime = std::chrono::steady_clock::now() - state.started;
  const std::string traces = all_traces(state);
  const OrderedJson document{{"traces", nullptr},
                             {"trace_bytes", state.traces.bytes()},
                             {"trace_budget", state.traces.budget()},
                             {"uptime_seconds", uptime.count()},
                             {"requests_processing", state.compute.waiting() + 1},
                             {"local", is_server()}};
  return text_reply(with_member(document, "traces", traces) + "\n", "application/json");
}

// ?token= and ?against= at ?position=; the mean loss without them.
GradientTarget gradient_target(const Request& request, const StoredTrace& trace) {
  GradientTarget target;
  const auto add = [&](const std::string& name, double weight) {
    if (!request.parameter(name)) return;
    const auto token = static_cast<std::int32_t>(
        bounded(request, name, 0, 0, trace.model().stack(PairSide::target).vocabulary_size - 1));
    target.logits.push_back({position_of(request, trace, -1), token, weight});
  };
  add("token", 1);
  add("against", -1);
  require(target.logits.size() == 2 || !request.parameter("against"), ErrorCode::invalid_argument,
          "against is subtracted from the logit of a token: it needs token");
  return target;
}

Reply take_array(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const std::string& point = request.in_path("point");
  require(point.find('*') == std::string::npos, ErrorCode::invalid_argument,
          "'{}' is not a single point", point.substr(0, 80));
  const TraceRequest wanted{.points = {point},
                            .layers = index_list(request, "layers"),
                            .heads = index_list(request, "heads"),
                            .positions = index_list(request, "positions"),
                            .source_positions = index_list(request, "source_positions")};
  const GradientTarget target = gradient_target(request, trace);
  require(target.logits.empty() || asks_for_gradients(wanted), ErrorCode::invalid_argument,
          "token needs a gradient to differentiate its logit, such as {}_grad",
          point.substr(0, 80));
  const Trace taken = trace.arrays(wanted, target);
  require(taken.arrays.size() == 1, ErrorCode::invalid_argument,
          "'{}' is a point of {} layers: name one, such as {}", point.substr(0, 80),
          taken.arrays.size(), taken.arrays.front().name);
  const TracedArray& array = taken.arrays.front();
  return array_reply(request, {.shape = array.shape, .values = array.values, .name = array.name});
}

}  // namespace

void add_trace_routes(TraceRoutes& routes) {
  routes.add("POST", "/api/traces", make_trace);
  routes.add("GET", "/api/traces", list_traces);
  routes.add("GET", "/api/status", status);
  routes.add("GET", "/api/traces/{id}", describe_trace);
  routes.add("DELETE", "/api/traces/{id}", drop_trace);
  routes.add("GET", "/api/traces/{id}/arrays/{point}", take_array);
}

}  // namespace heed::server
