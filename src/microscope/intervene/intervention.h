// Interventions: what to change in a pass, and where. Several act together, in their order, on any
// path: a whole sequence, a prompt and the steps after it, a batch.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "heed/intervention.h"
#include "model/config.h"
#include "model/editor.h"
#include "tensor/tensor.h"

namespace heed {

class Gpt;

// The values of the same point in another trace, B = 1; positions that the trace does not have stay
// as they are. A pattern traced before and put back is frozen.
struct ReplaceWith {
  explicit ReplaceWith(Tensor<float> trace)
      : values(std::make_shared<const Tensor<float>>(std::move(trace))) {}

  std::shared_ptr<const Tensor<float>> values;
};
using Change = std::variant<SetZero, ScaleBy, AddVector, SetRow, ReplaceWith, CutEdges>;

// Empty lists stand for all.
struct Selection {
  std::vector<std::int64_t> heads;    // at points that have heads
  std::vector<std::int64_t> neurons;  // of the last dimension, at points that have none
  // Positions [first, last] of a sequence, of queries in scores and patterns. From a step of a
  // generation on: first = length of the prompt + step.
  std::int64_t first_position = 0;
  std::int64_t last_position = std::numeric_limits<std::int64_t>::max();
};

struct Intervention {
  Site site;
  Selection where{};
  Change change;
};

class Interventions final : public Editor {
 public:
  // Throws Error{invalid_argument} for a layer, head or neuron that is not there, a vector or trace
  // of the wrong shape, and a change that its point does not know (edges are cut in patterns only,
  // logits cannot be changed).
  Interventions(const GptConfig& config, std::vector<Intervention> interventions);

  bool edits(const Site& site) const override;
  bool edits_head(const Site& site, std::int64_t head) const override;
  bool only_adds(const Site& site) const override;
  void edit(const EditPlace& place, View<float> values) override;

 private:
  GptConfig config_;
  std::vector<Intervention> interventions_;
};

// The mean of a point over all positions of some sequences, as SetRow takes it. Not for scores and
// patterns. Throws Error{invalid_argument} for those and for no sequences.
std::vector<float> mean_row(const Gpt& gpt, const Site& site,
                            std::span<const std::vector<std::int32_t>> sequences);

// A point of one text, as ReplaceWith takes it. Throws Error{invalid_argument} for a text that the
// model cannot read.
Tensor<float> values_at(const Gpt& gpt, const Site& site, std::span<const std::int32_t> tokens);

// (width) of a point's last dimension, and whether it has heads before it.
struct PointShape {
  std::int64_t width = 0;
  bool has_heads = false;  // (B, T, H, D)
  bool is_plane = false;   // (B, H, T, S)
};
PointShape point_shape(const GptConfig& config, Point point);

}  // namespace heed
