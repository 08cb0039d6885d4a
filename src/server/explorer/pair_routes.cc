// Pairs of texts: create, list, describe, delete, export as arrays.
#include "server/explorer/pair_routes.h"

#include "base/error.h"
#include "engine/edits.h"
#include "microscope/traces/activation_trace.h"
#include "server/explorer/array_reply.h"
#include "server/explorer/intervention_json.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

std::vector<std::int32_t> source_tokens(const PairModel& model, const Fields& fields,
                                        const StoredPair* base) {
  if (fields.has("source_tokens")) {
    require(!fields.has("source"), ErrorCode::invalid_argument,
            "give \"source\" or \"source_tokens\"");
    return fields.required_token_ids("source_tokens",
                                     model.architecture().encoder().vocabulary_size);
  }
  if (fields.has("source")) return model.encode_source(fields.required_string("source"));
  require(base != nullptr, ErrorCode::invalid_argument,
          "the request has none of \"source\", \"source_tokens\" and \"base\"");
  return base->pass->texts().source;
}

PairTexts texts_of(const PairModel& model, const Fields& fields, const StoredPair* base,
                   StopFlag stop) {
  std::vector<std::int32_t> source = source_tokens(model, fields, base);
  std::vector<std::int32_t> target;
  if (fields.has("target_tokens")) {
    require(!fields.has("target"), ErrorCode::invalid_argument,
            "give \"target\" or \"target_tokens\"");
    target =
        fields.required_token_ids("target_tokens", model.architecture().decoder().vocabulary_size);
  } else if (fields.has("target")) {
    target = model.encode_target(fields.required_string("target"));
  } else if (base != nullptr && !fields.has("source") && !fields.has("source_tokens")) {
    return {.tokens = base->pass->texts(), .is_translation = base->is_translation};
  } else {
    return translated_pair(model, std::move(source), stop);
  }
  return {.tokens = {std::move(source), std::move(target)}, .is_translation = false};
}

PairStore::NewPair read_pair(PairState& state, const Request& request) {
  const MemoryBudget::Share in_flight = share_of_document(state.pairs, request.body, 'p');
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only(
      {"source", "source_tokens", "target", "target_tokens", "interventions", "base"});
  const auto base_id = fields.string("base");
  const StoredPair* const base = base_id ? &state.pairs.use(*base_id) : nullptr;
  PairStore::NewPair wanted{.texts = texts_of(*state.model, fields, base, request.stop)};
  require_texts_fit(state.model->architecture(), wanted.texts.tokens);
  if (base != nullptr) wanted.base = base->id;
  if (fields.has("interventions")) {
    const Json& list = fields.required_list("interventions");
    const std::size_t kept = state.pairs.keep(passes_named_in(list));
    const auto take = [&](std::int64_t bytes) { state.pairs.take(wanted.held, bytes, kept); };
    wanted.interventions = requested_list(list);
    take(wanted.interventions.bytes());
    const auto recorded = [&](const std::string& id) {
      const RecordedPass& pass = *state.pairs.use(id).pass;
      return RecordedText{TextLengths::of(pass.texts()),
                          [&pass](Probe& probe) { pass.replay(probe); }};
    };
    wanted.editor = read_interventions(list, {.model = *state.model->model,
                                              .texts = wanted.texts.tokens,
                                              .recorded = recorded,
                                              .words = words_of(*state.model),
                                              .take_memory = take,
                                              .stop = request.stop});
  }
  return wanted;
}

Reply make_pair_of_texts(PairState& state, const Request& request) {
  PairStore::NewPair wanted = read_pair(state, request);
  return text_reply(
      pair_text(*state.model, state.pairs.add(*state.model, std::move(wanted))) + "\n",
      "application/json");
}

Reply list_pairs(PairState& state, const Request&) {
  std::string list;
  for (const StoredPair& pair : state.pairs.all()) {
    list += (list.empty() ? "" : ",") + pair_text(*state.model, pair);
  }
  return text_reply("{\"pairs\":[" + list + "]}\n", "application/json");
}

Reply describe_pair(PairState& state, const Request& request) {
  return text_reply(pair_text(*state.model, pair_of(state, request)) + "\n", "application/json");
}

Reply drop_pair(PairState& state, const Request& request) {
  state.pairs.remove(request.in_path("id"));
  return json_reply({{"deleted", request.in_path("id")}});
}

Reply take_pair_array(PairState& state, const Request& request) {
  const StoredPair& pair = pair_of(state, request);
  const std::string& point = request.in_path("point");
  require(point.find('*') == std::string::npos && !asks_for_gradients({.points = {point}}),
          ErrorCode::invalid_argument, "'{}' is not a single point", point.substr(0, 80));
  const TraceRequest wanted{.points = {point},
                            .layers = index_list(request, "layers"),
                            .heads = index_list(request, "heads"),
                            .positions = index_list(request, "positions"),
                            .source_positions = index_list(request, "source_positions")};
  ActivationTrace taken(pair.pass->architecture(), wanted,
                        {.positions = pair.pass->positions(), .sources = pair.pass->sources()});
  pair.pass->replay(taken);
  const Trace trace = taken.take();
  require(trace.arrays.size() == 1, ErrorCode::invalid_argument,
          "'{}' is a point of {} layers: name one, such as {}", point.substr(0, 80),
          trace.arrays.size(), trace.arrays.front().name);
  const TracedArray& array = trace.arrays.front();
  return array_reply(request, {.shape = array.shape, .values = array.values, .name = array.name});
}

}  // namespace

StoredPair& pair_of(PairState& state, const Request& request) {
  return state.pairs.use(request.in_path("id"));
}

void PairRoutes::add(const std::string& method, const std::string& pattern, PairHandler handler) {
  router_.add(method, pattern, [state = state_, handler](const Request& request) {
    require(state->load != nullptr, ErrorCode::not_found,
            "this server's model is one decoder, not a translator: pairs of texts need an "
            "encoder-decoder, such as heed explore -m DIR of one");
    return state->compute.run(request.stop, [&] {
      if (!state->model) state->model = state->load();
      return handler(*state, request);
    });
  });
}

void register_pairs(Router& router, Compute& compute, std::optional<PairModel> model,
                    std::int64_t budget) {
  PairModelLoader load;
  if (model) load = [model = *std::move(model)] { return model; };
  register_pairs(router, compute, std::move(load), budget);
}

void register_pairs(Router& router, Compute& compute, PairModelLoader load, std::int64_t budget) {
  PairRoutes routes(
      router, std::make_shared<PairState>(PairState{compute, std::move(load), PairStore(budget)}));
  routes.add("POST", "/api/pairs", make_pair_of_texts);
  routes.add("GET", "/api/pairs", list_pairs);
  routes.add("GET", "/api/pairs/{id}", describe_pair);
  routes.add("DELETE", "/api/pairs/{id}", drop_pair);
  routes.add("GET", "/api/pairs/{id}/arrays/{point}", take_pair_array);
  add_pair_attention_routes(routes);
  add_pair_effect_routes(routes);
}

}  // namespace heed::server
