// Transcoders in the place of all feed-forward layers of a model, for attribution graphs: what each
// gives is the sum of what its active features write, a bias, and an error that the transcoder
// leaves out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heed/features.h"
#include "microscope/features/dictionary.h"
#include "microscope/traces/recorded_pass.h"
#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

class LayerTranscoders {
 public:
  // Of none, neurons stay what they are. Throws Error{invalid_argument} for widths and points that
  // are not those of feed-forward layers, and for layers without one or with two; and
  // Error{unsupported} for transcoders that normalise what they read by themselves, and for W_skip
  // beside attention that reads the same stream.
  LayerTranscoders(std::span<const SparseDictionary> transcoders, const Transformer& model);

  bool empty() const { return of_layers_.empty(); }
  std::int64_t layers() const { return static_cast<std::int64_t>(of_layers_.size()); }
  // The one that reads at this layer.
  const Dictionary& of(std::int64_t layer) const {
    return *of_layers_[static_cast<std::size_t>(layer)];
  }
  Point input(std::int64_t layer) const { return inputs_[static_cast<std::size_t>(layer)]; }
  // Whether it reads the norm of the stream, before gain and bias, or the stream.
  bool reads_norm(std::int64_t layer) const;
  // Those that write what feed-forward gives at this layer: its own and, across layers, earlier
  // ones.
  struct Writer {
    std::int64_t layer = 0;
    std::int64_t point = 0;  // of its output points
  };
  const std::vector<Writer>& writers(std::int64_t layer) const {
    return writers_[static_cast<std::size_t>(layer)];
  }
  // The points that the one of a layer writes, in its own order.
  const std::vector<Point>& outputs(std::int64_t layer) const {
    return outputs_[static_cast<std::size_t>(layer)];
  }

  // Features of all layers that are active in a text of so many positions: at most, where the
  // architecture says how many are, otherwise by a guess of `guessed_active` a position.
  std::int64_t expected_features(std::int64_t positions) const;
  static constexpr std::int64_t guessed_active = 128;
  // What a position multiplies to find the active features of all layers, and to attribute to them.
  double work_of_encoding() const;
  double work_of_edges() const;

 private:
  std::vector<std::shared_ptr<const Dictionary>> of_layers_;
  std::vector<Point> inputs_;
  std::vector<std::vector<Writer>> writers_;
  std::vector<std::vector<Point>> outputs_;
};

// What transcoders make of a pass over one text.
class TranscodedPass {
 public:
  // Borrows both. `after_layer` is told how many features are active so far.
  TranscodedPass(const LayerTranscoders& transcoders, const RecordedPass& pass,
                 const std::function<void(std::int64_t active)>& after_layer = {});

  const LayerTranscoders& transcoders() const { return transcoders_; }
  const FeatureRows& active(std::int64_t layer) const { return of(layer).active; }
  std::int64_t features() const { return first_.back(); }  // active ones of all layers
  // The number of a layer's first one.
  std::int64_t first(std::int64_t layer) const { return first_[static_cast<std::size_t>(layer)]; }
  // (T, C): what feed-forward gives less what transcoders make of it.
  View<const float> error(std::int64_t layer) const { return of(layer).error; }

  struct Feature {
    std::int64_t layer = 0;
    std::int64_t position = 0;
    std::int64_t number = 0;
  };
  Feature feature(std::int64_t active) const;  // by its number among the active ones
  // That number, or −1 of one that is not active.
  std::int64_t number_of(const Feature& feature) const;
  float activation(const Feature& feature) const;  // 0 of one that is not active
  // Before its activation: of gated ones the magnitude.
  double read(const Feature& feature) const;

 private:
  struct OfLayer {
    Tensor<float> input;  // (T, I): x̂, as the encoder multiplies it
    FeatureRows active;
    Tensor<float> error;  // (T, C)
  };
  const OfLayer& of(std::int64_t layer) const { return layers_[static_cast<std::size_t>(layer)]; }

  const LayerTranscoders& transcoders_;
  std::vector<OfLayer> layers_;
  std::vector<std::int64_t> first_;  // (L + 1)
};

// What a feature reads, as a sum: weights (I) of the point that it reads, and what biases add.
struct FeatureReading {
  std::vector<float> weights;
  double bias = 0;
};
FeatureReading feature_reading(const Dictionary& dictionary, std::int64_t feature);

}  // namespace heed
