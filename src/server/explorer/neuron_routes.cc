// Neurons: the strongest ones, the tokens that they promote, and their contexts in a corpus.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "engine/views/token_json.h"
#include "microscope/explain/neurons.h"
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
  const Transformer& gpt = trace.model().gpt;
  const View<const float> post = trace.pass->activations().block(layer).feed_forward.post;
  const std::vector<NeuronStrength> strongest =
      strongest_neurons(gpt, layer, post[position].span(), top);

  Tensor<float> directions(Shape{std::ssize(strongest), config.channels});
  for (std::size_t i = 0; i < strongest.size(); ++i) {
    copy_neuron_output(gpt, layer, strongest[i].neuron,
                       directions.view()[static_cast<std::int64_t>(i)].span());
  }
  const std::vector<VocabularyProjection> readings = project_to_logits(gpt, directions, 5);
  OrderedJson neurons = OrderedJson::array();
  for (std::size_t i = 0; i < strongest.size(); ++i) {
    OrderedJson promotes = OrderedJson::array();
    for (const ProjectedToken& score : readings[i].most) {
      promotes.push_back(token_json(trace.model(), score.token));
    }
    neurons.push_back({{"neuron", strongest[i].neuron},
                       {"activation", json_number(strongest[i].activation)},
                       {"promotes", std::move(promotes)},
                       {"contribution", json_number(strongest[i].strength)}});
  }
  return json_reply({{"layer", layer}, {"position", position}, {"neurons", std::move(neurons)}});
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
  const LoadedModel& model = trace != nullptr ? trace->model() : state.context.model;
  const StackSpecification& config = model.gpt.specification();
  const std::int64_t layer = checked_layer(request.integer_in_path("layer"), config);
  const std::int64_t neuron = checked_neuron(request.integer_in_path("neuron"), config);
  Tensor<float> direction(Shape{1, config.channels});
  copy_neuron_output(model.gpt, layer, neuron, direction.span());
  const VocabularyProjection reading = project_to_logits(model.gpt, direction, 10).front();
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

Corpus corpus_of(const State& state) {
  const LoadedModel& model = state.context.model;
  if (const std::filesystem::path& file = state.options.corpus; !file.empty()) {
    const std::string text = naming_files_from(
        file.parent_path(), [&] { return read_text_file(file, max_corpus_bytes); });
    return {file.filename().string(), model.encode(text)};
  }
  require(model.is_starter, ErrorCode::conflict,
          "contexts need a text to search: start with --corpus FILE");
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
  const LoadedModel& model = state.context.model;
  const StackSpecification& config = model.gpt.specification();
  const NeuronId id{checked_layer(request.integer_in_path("layer"), config),
                    checked_neuron(request.integer_in_path("neuron"), config)};
  const std::int64_t top = bounded(request, "top", 10, 1, 100);
  if (state.neuron_contexts.size() >= max_kept_contexts) state.neuron_contexts.clear();
  std::string& kept = state.neuron_contexts[fmt::format("{}/{}/{}", id.layer, id.neuron, top)];
  if (kept.empty()) {
    const Corpus corpus = corpus_of(state);
    const NeuronMemory memory = find_neuron_contexts(model.gpt, corpus.tokens, std::array{id},
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
}

void add_neuron_routes(StateRoutes& routes) {
  routes.add("GET", "/api/neurons/{layer}/{neuron}", one_neuron);
  routes.add("GET", "/api/neurons/{layer}/{neuron}/contexts", contexts);
}

}  // namespace heed::server
