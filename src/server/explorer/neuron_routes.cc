// Neurons: the strongest ones, the tokens that they promote, and their contexts in a corpus.
#include <algorithm>
#include <array>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "engine/views/token_json.h"
#include "microscope/explain/neurons.h"
#include "microscope/intervene/neuron_effects.h"
#include "microscope/traces/capture.h"
#include "microworld/microworld.h"
#include "server/explorer/shown_files.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

constexpr std::uint64_t corpus_seed = 2;  // the starter was trained on other stories
constexpr std::int64_t stories_read = 400;
constexpr std::size_t max_kept_contexts = 512;  // documents of some kilobytes
constexpr std::size_t max_corpus_bytes = std::size_t{4} << 20;

Reply strongest(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "the strongest neurons are");
  const StackSpecification& config = trace.specification();
  const std::int64_t layer = checked_layer(request.integer("layer", 0), config);
  const std::int64_t position = position_of(request, trace);
  const auto top = static_cast<std::size_t>(
      std::min(bounded(request, "top", 20, 1, 1 << 20), config.feed_forward()));
  const Transformer& transformer = trace.model().transformer;
  const View<const float> post = trace.pass->activations().block(layer).feed_forward.post;
  const std::span<const float> activations = post[position].span();
  const bool by_effect = one_of(request, "by", {"contribution", "direct"}) == "direct";
  const std::vector<double> probabilities =
      probabilities_of(trace.pass->logits(position, position + 1).span());
  const auto likeliest =
      static_cast<std::int32_t>(std::ranges::max_element(probabilities) - probabilities.begin());
  const std::vector<double> direct = direct_neuron_effects(
      transformer, layer, activations,
      log_probability_direction(transformer, likeliest, probabilities),
      trace.pass->computed({PointKind::final_scale, -1}).view()(0, position, 0));
  std::vector<NeuronStrength> strongest =
      strongest_neurons(transformer, layer, activations, by_effect ? activations.size() : top);
  const auto effect_of = [&](const NeuronStrength& one) {
    return direct[static_cast<std::size_t>(one.neuron)];
  };
  if (by_effect) {
    std::ranges::stable_sort(strongest, std::greater{}, effect_of);
    strongest.resize(top);
  }

  Tensor<float> directions(Shape{std::ssize(strongest), config.channels});
  for (std::size_t i = 0; i < strongest.size(); ++i) {
    copy_neuron_output(transformer, layer, strongest[i].neuron,
                       directions.view()[static_cast<std::int64_t>(i)].span());
  }
  const std::vector<VocabularyProjection> readings = project_to_logits(transformer, directions, 5);
  OrderedJson neurons = OrderedJson::array();
  for (std::size_t i = 0; i < strongest.size(); ++i) {
    OrderedJson promotes = OrderedJson::array();
    for (const ProjectedToken& score : readings[i].most) {
      promotes.push_back(token_json(trace.model(), score.token));
    }
    neurons.push_back({{"neuron", strongest[i].neuron},
                       {"activation", json_number(strongest[i].activation)},
                       {"promotes", std::move(promotes)},
                       {"contribution", json_number(strongest[i].strength)},
                       {"direct", json_number(effect_of(strongest[i]))}});
  }
  return json_reply({{"layer", layer},
                     {"position", position},
                     {"token", token_json(trace.model(), likeliest)},
                     {"neurons", std::move(neurons)}});
}

// What the neurons of a layer do to the likeliest token after a position, measured; and of any
// layer, the one with the largest direct effect.
Reply effects(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "effects of neurons are");
  require(trace.interventions.empty(), ErrorCode::unsupported,
          "effects of neurons do not support interventions; trace {} has some", trace.id);
  const StackSpecification& stack = trace.specification();
  const std::int64_t position = position_of(request, trace);
  NeuronEffectOptions options{
      .layer = checked_layer(request.integer("layer", 0), stack),
      .most = static_cast<std::size_t>(bounded(request, "top", 8, 1, 32)),
      .stop = request.stop,
  };
  if (request.parameter("neuron")) {
    options.chosen = checked_neuron(request.integer("neuron", 0), stack);
  }
  const NeuronEffects found =
      neuron_effects(trace.model().transformer,
                     trace.pass->tokens().first(static_cast<std::size_t>(position) + 1), options);
  OrderedJson neurons = OrderedJson::array();
  for (const NeuronEffect& effect : found.neurons) {
    neurons.push_back({{"neuron", effect.id.neuron},
                       {"activation", json_number(effect.activation)},
                       {"direct", json_number(effect.direct)},
                       {"without", json_number(effect.without)}});
  }
  OrderedJson controls = OrderedJson::array();
  for (const NeuronControl& control : found.controls) {
    controls.push_back({{"neuron", control.id.neuron}, {"without", json_number(control.without)}});
  }
  return json_reply({{"layer", options.layer},
                     {"position", position},
                     {"token", token_json(trace.model(), found.token)},
                     {"probability", json_number(found.probability)},
                     {"neurons", std::move(neurons)},
                     {"controls", std::move(controls)},
                     {"matters", found.first_matters()},
                     {"largest",
                      {{"layer", found.largest.id.layer},
                       {"neuron", found.largest.id.neuron},
                       {"direct", json_number(found.largest.direct)}}}});
}

OrderedJson scores_json(const LoadedModel& model, const std::vector<ProjectedToken>& scores) {
  OrderedJson rows = OrderedJson::array();
  for (const ProjectedToken& score : scores) {
    rows.push_back(
        {{"token", token_json(model, score.token)}, {"value", json_number(score.score)}});
  }
  return rows;
}

Reply one_neuron(State& state, const Request& request) {
  const auto id = request.parameter("trace");
  StoredTrace* const trace =
      id ? &state.traces.use_of_one_text(*id, "activations of a neuron are") : nullptr;
  const ChosenModel chosen = trace != nullptr ? trace->source : state.model_of(request);
  const LoadedModel& model = *chosen.model;
  const StackSpecification& config = model.transformer.specification();
  const std::int64_t layer = checked_layer(request.integer_in_path("layer"), config);
  const std::int64_t neuron = checked_neuron(request.integer_in_path("neuron"), config);
  Tensor<float> direction(Shape{1, config.channels});
  copy_neuron_output(model.transformer, layer, neuron, direction.span());
  const VocabularyProjection reading = project_to_logits(model.transformer, direction, 10).front();
  OrderedJson activations = nullptr;
  if (trace != nullptr) {
    const View<const float> post = trace->pass->activations().block(layer).feed_forward.post;
    activations = OrderedJson::array();
    for (std::int64_t t = 0; t < trace->positions(); ++t) {
      activations.push_back(json_number(post(t, neuron)));
    }
  }
  return json_reply({{"layer", layer},
                     {"neuron", neuron},
                     {"promotes", scores_json(model, reading.most)},
                     {"suppresses", scores_json(model, reading.least)},
                     {"activations", std::move(activations)}});
}

struct Corpus {
  std::string source;
  std::vector<std::int32_t> tokens;
};

Corpus corpus_of(const State& state, const LoadedModel& model) {
  if (const std::filesystem::path& file = state.options.corpus; !file.empty()) {
    const std::string text = naming_files_from(
        file.parent_path(), [&] { return read_text_file(file, max_corpus_bytes); });
    return {file.filename().string(), model.encode(text)};
  }
  require(
      model.is_starter(), ErrorCode::conflict,
      "heed has no text of what {} has read, to find where this neuron is active. Give one, such "
      "as a book as plain text of at most {} MB: heed explore -m {} --corpus book.txt",
      model.embedded_name.empty() ? "this model" : model.embedded_name, max_corpus_bytes >> 20,
      model.embedded_name.empty() ? "MODEL" : model.embedded_name);
  const microworld::Microworld world(corpus_seed);
  std::string text;
  for (std::int64_t i = 0; i < stories_read; ++i) text += world.story(i).text + "\n";
  return {"microworld", model.encode(text)};
}

OrderedJson context_json(const LoadedModel& model, const NeuronContext& context) {
  return {{"activation", json_number(context.activation)},
          {"tokens", tokens_json(model, context.tokens)},
          {"position", context.peak}};
}

Reply contexts(State& state, const Request& request) {
  const ChosenModel chosen = state.model_of(request);
  const LoadedModel& model = *chosen.model;
  const StackSpecification& config = model.transformer.specification();
  const NeuronId id{checked_layer(request.integer_in_path("layer"), config),
                    checked_neuron(request.integer_in_path("neuron"), config)};
  const std::int64_t top = bounded(request, "top", 10, 1, 100);
  if (state.neuron_contexts.size() >= max_kept_contexts) state.neuron_contexts.clear();
  std::string& kept = state.neuron_contexts[fmt::format("{}/{}/{}/{}", id.layer, id.neuron, top,
                                                        chosen.model->name)];
  if (kept.empty()) {
    const Corpus corpus = corpus_of(state, model);
    const NeuronMemory memory =
        find_neuron_contexts(model.transformer, corpus.tokens, std::array{id},
                             {.top = top, .stop = request.stop})
            .front();
    OrderedJson rows = OrderedJson::array();
    for (const NeuronContext& context : memory.contexts) {
      rows.push_back(context_json(model, context));
    }
    kept = json_text({{"source", corpus.source}, {"contexts", std::move(rows)}});
  }
  return text_reply(kept, "application/json");
}

}  // namespace

void add_neuron_routes(TraceRoutes& routes) {
  routes.add("GET", "/api/traces/{id}/neurons", strongest);
  routes.add("GET", "/api/traces/{id}/neurons/effects", effects);
}

void add_neuron_routes(StateRoutes& routes) {
  routes.add("GET", "/api/neurons/{layer}/{neuron}", one_neuron);
  routes.add("GET", "/api/neurons/{layer}/{neuron}/contexts", contexts);
}

}  // namespace heed::server
