// The explanations of the public facade: heed's own types in, standard types out.
#include "heed/explain.h"

#include "engine/facade.h"
#include "formats/gguf_files.h"
#include "formats/model_files.h"
#include "microscope/explain/attribution.h"
#include "microscope/explain/logit_gradients.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/explain/weight_processing.h"
#include "microscope/explain/word_directions.h"

namespace heed {
namespace {

const Transformer& transformer_of(const Model& model) {
  return ModelAccess::of_one_text(model).transformer;
}

AttributionUnit unit_of(AttributeBy by) {
  switch (by) {
    case AttributeBy::component: return AttributionUnit::component;
    case AttributeBy::head: return AttributionUnit::head;
    case AttributeBy::neuron: return AttributionUnit::neuron;
    case AttributeBy::source: break;
  }
  return AttributionUnit::source;
}

std::vector<std::vector<LayerPrediction>> predictions_of(const LogitLens& lens) {
  std::vector<std::vector<LayerPrediction>> layers(lens.points.size());
  for (std::size_t point = 0; point < lens.points.size(); ++point) {
    for (std::int64_t position = 0; position < lens.positions; ++position) {
      const LensCell& cell = lens.at(static_cast<std::int64_t>(point), position);
      LayerPrediction& prediction = layers[point].emplace_back();
      prediction.entropy = cell.entropy;
      prediction.divergence = cell.divergence;
      for (const LensToken& token : cell.top) {
        prediction.tokens.push_back(token.token);
        prediction.probabilities.push_back(token.probability);
      }
    }
  }
  return layers;
}

}  // namespace

std::vector<std::vector<LayerPrediction>> logit_lens(const Model& model, const Texts& texts,
                                                     std::int64_t top) {
  const Transformer& transformer = ModelAccess::for_source(model, texts.source).transformer;
  if (texts.source.empty()) {
    return predictions_of(look_through_layers(transformer, texts.target, {.top = top}));
  }
  return predictions_of(look_through_layers(RecordedPass(transformer, texts), {.top = top}));
}

std::vector<LogitPart> attribute_logit(const Model& model, std::span<const std::int32_t> tokens,
                                       const LogitOf& logit, AttributeBy by) {
  const Attribution attribution = attribute_logit(
      transformer_of(model), tokens, {logit.token, logit.against}, unit_of(by), logit.position);
  std::vector<LogitPart> parts;
  for (const AttributionTerm& term : attribution.terms) parts.push_back({term.name(), term.value});
  return parts;
}

TokenAttribution attribute_tokens(const Model& model, std::span<const std::int32_t> tokens,
                                  const LogitOf& logit, const IntegrationOptions& options) {
  IntegratedGradients found = integrate_gradients(
      transformer_of(model), tokens, {{logit.token, logit.against}, logit.position}, options);
  return {.tokens = std::move(found.tokens),
          .logit = found.metric,
          .baseline = found.baseline,
          .completeness_error = found.completeness_error};
}

std::vector<NearestWords> nearest_words(const Model& model, std::span<const std::int32_t> tokens,
                                        std::int64_t position, std::int64_t top) {
  const RecordedPass pass(transformer_of(model),
                          {.source = {}, .target = {tokens.begin(), tokens.end()}});
  return nearest_words(pass, position, top).depths;
}

void save_processed(const Model& model, const std::string& directory) {
  const LoadedModel& loaded = ModelAccess::of_one_text(model);
  const bool has_files =
      is_gguf_path(loaded.directory) ||
      (!loaded.directory.empty() && std::filesystem::exists(loaded.directory / config_file_name));
  SourceFiles files;
  if (has_files) {
    files = read_source_files(loaded.directory);
  } else if (loaded.tokenizer != nullptr) {
    for (TokenizerFile& file : loaded.tokenizer->files()) {
      files.companions.push_back({std::move(file.name), std::move(file.content)});
    }
    if (loaded.reading != nullptr) {
      files.companions.push_back({reading_file_name, reading_text(*loaded.reading)});
    }
  }
  save_transformer(process_weights(transformer_of(model)), directory, files);
}

}  // namespace heed
