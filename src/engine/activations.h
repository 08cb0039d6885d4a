// What files of the facade share of recorded passes.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/point_keeper.h"
#include "heed/activations.h"
#include "microscope/traces/recorded_pass.h"
#include "model/transformer.h"

namespace heed {

struct Activations::Parts {
  Architecture architecture;
  Device device;                             // that the model computes on
  const Transformer* transformer = nullptr;  // null: of an encoder-decoder
  std::vector<std::int32_t> tokens;          // (B, T), of the decoder where there are two stacks
  std::vector<std::int32_t> source;          // (B, M), of the encoder
  Sequences rows, source_rows;               // of the pass
  std::int64_t positions = 1;                // T and M of the longest
  std::int64_t sources = 0;
  std::vector<std::string> names;
  std::optional<RecordedPass> pass;
  std::map<std::string, Array, std::less<>> kept;
  // Of `kept` alone: what the caller gave, if it did.
  std::optional<GivenActivations::Kind> given;
  std::vector<LazyAttention> attention;
  Array logits;
  // Computed values in use: another reader gets the same.
  mutable std::mutex mutex;
  mutable std::map<std::string, std::weak_ptr<float[]>, std::less<>> computed;

  void read(const RecordedPass& recorded);   // what it read
  Point point(std::string_view name) const;  // throws Error{not_found} for one that is not there
  bool has(std::string_view name) const;
  std::int64_t queries(const Point& point) const;
  std::int64_t keys(const Point& plane) const;
  const Sequences& rows_of(const Point& point) const;  // of queries
  const Sequences& keys_of(const Point& plane) const;
  // (sequences, heads, queries, keys), on a device.
  Tensor<float> tiles(const Point& plane, AttentionTiles wanted, Device place = {}) const;
  void copy_tile(const Point& point, const kernels::AttentionTile& tile, View<float> out) const;
  Tensor<float> values(const Point& point) const;

 private:
  bool follows_from_given(const Point& point) const;
  Tensor<float> head_results_of_given(std::int64_t layer) const;
};

struct ActivationsAccess {
  using Parts = Activations::Parts;
  static Activations make(std::shared_ptr<Parts> parts) { return Activations(std::move(parts)); }
  static const Parts& parts(const Activations& found) { return *found.parts_; }
  static std::shared_ptr<const Parts> owner(const Activations& found) { return found.parts_; }
};

// The model that ran. Throws Error{unsupported} for an encoder-decoder.
const Transformer& activations_model(const Activations& found);

// A point of one stack, of the shape that its model gives it: throws Error{invalid_argument} for an
// array of a caller's that has another.
SharedView checked_point(const Activations& found, std::string_view name);

// What a request selects of a model's points, in the order of a pass.
struct RequestedPoints {
  std::vector<Point> points;
  std::vector<Point> gradients;
  std::vector<std::string> names;  // of both

  // Throws what points_named throws.
  RequestedPoints(const RecordRequest& request, const Architecture& architecture);
};

}  // namespace heed
