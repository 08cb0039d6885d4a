// Why a word is predicted: the paths that decided it, each measured by switching it off; and what
// the features of such paths are.
#include "base/error.h"
#include "base/json.h"
#include "engine/carried_transcoders.h"
#include "engine/views/graph_json.h"
#include "microscope/intervene/graph_effects.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

Reply causes(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "the paths to a word are");
  require(trace.interventions.empty(), ErrorCode::unsupported,
          "the paths to a word do not support interventions; trace {} has some", trace.id);
  const std::int64_t position = position_of(request, trace);
  const std::span<const std::int32_t> tokens =
      trace.pass->tokens().first(static_cast<std::size_t>(position) + 1);
  const auto stop_if_asked = [&] {
    require(!stop_requested(request.stop), ErrorCode::interrupted,
            "stopped while looking for the paths to a word");
  };
  // Features where heed has transcoders of the model, but for a request that wants neurons.
  const auto transcoders = one_of(request, "units", {"features", "neurons"}) == "features"
                               ? carried_transcoders(trace.model())
                               : nullptr;
  CauseOptions options{
      .paths = static_cast<std::size_t>(bounded(request, "paths", 3, 1, 8)),
      .poll = stop_if_asked,
  };
  if (transcoders != nullptr) options.transcoders = transcoders->of_layers;
  OrderedJson document{{"position", position}};
  document.update(causes_json(trace.model(), tokens,
                              word_causes(trace.model().transformer, tokens, options),
                              FeatureNames::carried));
  return json_reply(document);
}

// What a feature is: what it answers to, and the vector that it writes, times its activation, into
// what feed-forward gives.
Reply feature(State& state, const Request& request) {
  const ChosenModel chosen = state.model_of(request);
  const LoadedModel& model = *chosen.model;
  const auto transcoders = carried_transcoders(model);
  require(transcoders != nullptr, ErrorCode::not_found, "heed has no transcoders of {}",
          model.name);
  const std::int64_t layer =
      checked_layer(request.integer_in_path("layer"), model.transformer.specification());
  const Dictionary& dictionary =
      transcoders->of_layers[static_cast<std::size_t>(layer)].dictionary();
  const DictionarySpecification& own = dictionary.specification();
  const std::int64_t number = request.integer_in_path("feature");
  require(number >= 0 && number < own.features, ErrorCode::not_found,
          "feature {} does not exist: the transcoder of layer {} has features 0 to {}", number,
          layer, own.features - 1);
  OrderedJson document{{"layer", layer}, {"feature", number}, {"text", transcoders->text}};
  document.update(feature_name_json(model, layer, number));
  document["reads"] = own.input_point;
  document["writes"] = own.output_points.front();
  const float* const row = dictionary.weights().decoder.data() + number * own.outputs;
  document["vector"] = std::vector<float>(row, row + own.outputs);
  return json_reply(document);
}

}  // namespace

void add_cause_routes(TraceRoutes& routes) { routes.add("GET", "/api/traces/{id}/causes", causes); }
void add_feature_routes(StateRoutes& routes) {
  routes.add("GET", "/api/features/{layer}/{feature}", feature);
}

}  // namespace heed::server
