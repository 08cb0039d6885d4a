#include "microscope/explain/layer_transcoders.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

using enum ErrorCode;

// Where feed-forward of a layer reads: the stream, or its norm before gain and bias.
bool is_feed_forward_input(const Point& point, const StackSpecification& stack) {
  switch (point.kind) {
    case PointKind::feed_forward_in:
    case PointKind::norm_2_normalized: return !stack.shares_norm();
    case PointKind::residual_mid: return !stack.is_parallel();
    case PointKind::residual_pre: return stack.is_parallel();
    case PointKind::norm_1_normalized: return stack.shares_norm();
    default: return false;
  }
}

Point only_point(const std::string& name, const Architecture& architecture) {
  return points_named(name, architecture).front();
}

void require_usable(const Dictionary& dictionary, const StackSpecification& stack) {
  const DictionarySpecification& own = dictionary.specification();
  require(own.is_transcoder(), invalid_argument,
          "'{}' writes back what it reads: an attribution graph needs transcoders, from what "
          "feed-forward reads to what it gives",
          own.input_point);
  require(own.input_norm == InputNorm::none, unsupported,
          "the transcoder of '{}' normalises what it reads, which an attribution graph cannot hold "
          "constant",
          own.input_point);
  require(!dictionary.weights().skip.present() || !stack.is_parallel(), unsupported,
          "the transcoder of '{}' has W_skip, which an attribution graph knows only where "
          "feed-forward reads the stream after attention",
          own.input_point);
}

}  // namespace

LayerTranscoders::LayerTranscoders(std::span<const SparseDictionary> transcoders,
                                   const Transformer& model) {
  if (transcoders.empty()) return;
  const Architecture& architecture = model.architecture();
  const StackSpecification& stack = model.specification();
  const auto layers = static_cast<std::size_t>(stack.layers);
  of_layers_.resize(layers);
  inputs_.resize(layers, {PointKind::feed_forward_in});
  writers_.resize(layers);
  outputs_.resize(layers);
  for (const SparseDictionary& each : transcoders) {
    const Dictionary& dictionary = each.dictionary();
    const DictionarySpecification& own = dictionary.specification();
    require_usable(dictionary, stack);
    require_fits(dictionary, architecture);
    const Point input = only_point(own.input_point, architecture);
    require(is_feed_forward_input(input, stack), invalid_argument,
            "a transcoder reads '{}', expected what feed-forward of a layer reads, such as {}",
            point_name(input),
            point_name(
                {stack.shares_norm() ? PointKind::norm_1_normalized : PointKind::norm_2_normalized,
                 std::max<std::int64_t>(input.layer, 0)}));
    const auto layer = static_cast<std::size_t>(input.layer);
    require(of_layers_[layer] == nullptr, invalid_argument,
            "layer {} has two transcoders, expected one for each layer", input.layer);
    of_layers_[layer] = each.shared();
    inputs_[layer] = input;
    for (std::int64_t p = 0; p < own.points(); ++p) {
      const Point output = only_point(own.output_points[static_cast<std::size_t>(p)], architecture);
      const Point expected{PointKind::feed_forward_out, p == 0 ? input.layer : output.layer};
      require(output == expected && output.layer >= input.layer, invalid_argument,
              "the transcoder of layer {} writes '{}', expected {}", input.layer,
              point_name(output), point_name({PointKind::feed_forward_out, input.layer}));
      writers_[static_cast<std::size_t>(output.layer)].push_back({input.layer, p});
      outputs_[layer].push_back(output);
    }
  }
  std::vector<std::size_t> missing;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    if (of_layers_[layer] == nullptr) missing.push_back(layer);
  }
  require(missing.empty(), invalid_argument,
          "there is no transcoder for layers {}: expected one for each of the {} layers",
          fmt::join(missing, ", "), layers);
}

bool LayerTranscoders::reads_norm(std::int64_t layer) const {
  const PointKind kind = input(layer).kind;
  return kind == PointKind::norm_2_normalized || kind == PointKind::norm_1_normalized;
}

std::int64_t LayerTranscoders::expected_features(std::int64_t positions) const {
  std::int64_t count = 0;
  for (const auto& dictionary : of_layers_) {
    const DictionarySpecification& own = dictionary->specification();
    count += std::min(own.features, own.k > 0 ? own.k : guessed_active);
  }
  return count * positions;
}

double LayerTranscoders::work_of_encoding() const {
  double work = 0;
  for (const auto& dictionary : of_layers_) {
    work += static_cast<double>(dictionary->weights().encoder.size());
  }
  return work;
}

double LayerTranscoders::work_of_edges() const {
  double work = 0;
  for (const auto& dictionary : of_layers_) {
    const DictionarySpecification& own = dictionary->specification();
    work += static_cast<double>(std::min(own.features, own.k > 0 ? own.k : guessed_active) *
                                own.points() * own.outputs);
  }
  return work;
}

TranscodedPass::TranscodedPass(const LayerTranscoders& transcoders, const RecordedPass& pass,
                               const std::function<void(std::int64_t active)>& after_layer)
    : transcoders_(transcoders) {
  const std::int64_t layers = pass.model().specification().layers, positions = pass.positions();
  first_.push_back(0);
  std::vector<Tensor<float>> read;  // (T, I), by layer
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const Dictionary& dictionary = transcoders.of(layer);
    const std::int64_t inputs = dictionary.specification().inputs;
    read.push_back(pass.computed(transcoders.input(layer)));
    Dictionary::Encoding encoding =
        dictionary.read(read.back().view().reshape({positions, inputs}));
    OfLayer own{.input = std::move(encoding.input), .active = {}, .error = {}};
    own.active = dictionary.encode_input(own.input);
    first_.push_back(first_.back() + own.active.entries());
    layers_.push_back(std::move(own));
    if (after_layer) after_layer(first_.back());
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const Tensor<float> given = pass.computed({PointKind::feed_forward_out, layer});
    const std::int64_t channels = pass.model().specification().channels;
    OfLayer& own = layers_[static_cast<std::size_t>(layer)];
    own.error = Tensor<float>(Shape{positions, channels});
    Tensor<float> part(own.error.shape());
    std::ranges::copy(given.span(), own.error.data());
    for (const LayerTranscoders::Writer& writer : transcoders.writers(layer)) {
      const Dictionary& dictionary = transcoders.of(writer.layer);
      const Tensor<float>& x = read[static_cast<std::size_t>(writer.layer)];
      dictionary.decode(active(writer.layer),
                        x.view().reshape({positions, dictionary.specification().inputs}), part,
                        writer.point);
      kernels::subtract(own.error, part, own.error);
    }
  }
}

TranscodedPass::Feature TranscodedPass::feature(std::int64_t active) const {
  const auto layer = std::ranges::upper_bound(first_, active) - first_.begin() - 1;
  const FeatureRows& rows = layers_[static_cast<std::size_t>(layer)].active;
  const std::int64_t entry = active - first_[static_cast<std::size_t>(layer)];
  const auto position = std::ranges::upper_bound(rows.begins, entry) - rows.begins.begin() - 1;
  return {.layer = layer,
          .position = position,
          .number = rows.features[static_cast<std::size_t>(entry)]};
}

std::int64_t TranscodedPass::number_of(const Feature& feature) const {
  const FeatureRows& rows = active(feature.layer);
  const auto row = static_cast<std::size_t>(feature.position);
  const auto begin = rows.features.begin() + rows.begins[row];
  const auto end = rows.features.begin() + rows.begins[row + 1];
  const auto at = std::lower_bound(begin, end, feature.number);
  if (at == end || *at != feature.number) return -1;
  return first(feature.layer) + (at - rows.features.begin());
}

float TranscodedPass::activation(const Feature& feature) const {
  const std::int64_t number = number_of(feature);
  if (number < 0) return 0;
  return active(feature.layer).values[static_cast<std::size_t>(number - first(feature.layer))];
}

double TranscodedPass::read(const Feature& feature) const {
  const Dictionary& dictionary = transcoders_.of(feature.layer);
  const DictionaryWeights& weights = dictionary.weights();
  const std::int64_t inputs = dictionary.specification().inputs;
  const float* const row = weights.encoder.data() + feature.number * inputs;
  const float* const x = of(feature.layer).input.data() + feature.position * inputs;
  double sum = 0;
  for (std::int64_t c = 0; c < inputs; ++c) sum += double{row[c]} * x[c];
  if (weights.magnitude.present()) sum *= double{weights.magnitude[feature.number]};
  return sum + double{weights.encoder_bias[feature.number]};
}

FeatureReading feature_reading(const Dictionary& dictionary, std::int64_t feature) {
  const DictionaryWeights& weights = dictionary.weights();
  const std::int64_t inputs = dictionary.specification().inputs;
  const float* const row = weights.encoder.data() + feature * inputs;
  FeatureReading reading{.weights = {row, row + inputs},
                         .bias = double{weights.encoder_bias[feature]}};
  if (weights.magnitude.present()) {
    for (float& weight : reading.weights) weight *= weights.magnitude[feature];
  }
  if (dictionary.specification().subtracts_decoder_bias) {
    for (std::int64_t c = 0; c < inputs; ++c) {
      reading.bias -=
          double{reading.weights[static_cast<std::size_t>(c)]} * double{weights.decoder_bias[c]};
    }
  }
  return reading;
}

}  // namespace heed
