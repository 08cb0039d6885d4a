// Interventions: changes of values during a pass. Several are applied in order, on every path:
// whole sequences, prompts, generation steps, batches.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "heed/intervention.h"
#include "model/architecture.h"
#include "model/editor.h"
#include "model/probe.h"
#include "model/texts.h"
#include "tensor/tensor.h"

namespace heed {

class Transformer;

// Replaces values by those of the same point in another trace, B = 1; positions beyond the trace
// are unchanged. Replacing a pattern by a traced one freezes it.
struct ReplaceWith {
  explicit ReplaceWith(Tensor<float> trace)
      : values(std::make_shared<const Tensor<float>>(std::move(trace))) {}

  std::shared_ptr<const Tensor<float>> values;
};
using Change = std::variant<SetZero, ScaleBy, AddVector, SetRow, ReplaceWith, CutEdges, SetMask>;

// Empty lists select all.
struct Selection {
  std::vector<std::int64_t> heads;    // at points that have heads; of keys: key/value heads
  std::vector<std::int64_t> neurons;  // of the last dimension, at points that have none
  // Positions [first, last] of a sequence; for scores and patterns, of queries. To start at a step
  // of a generation: first = length of the prompt + step.
  std::int64_t first_position = 0;
  std::int64_t last_position = std::numeric_limits<std::int64_t>::max();
};

struct Intervention {
  Point point;
  Selection where{};
  Change change;
};

class Interventions final : public Editor {
 public:
  // Throws Error{invalid_argument} for a layer, head or neuron that is not there, a vector or trace
  // of the wrong shape, and a change that its point does not know (edges are cut in patterns only,
  // masks set in scores, logits cannot be changed), and Error{unsupported} for a point that the
  // model lacks.
  Interventions(const StackSpecification& config, std::vector<Intervention> interventions);
  // The same for a model of two stacks, whose points name theirs. Of cross-attention, positions of
  // keys and values are those of the source.
  Interventions(const Architecture& architecture, std::vector<Intervention> interventions);

  bool edits(const Point& point) const override;
  bool edits_head(const Point& point, std::int64_t head) const override;
  bool only_adds(const Point& point) const override;
  void edit(const EditedPoint& edited, View<float> values) override;

 private:
  const StackSpecification& stack_of(const Point& point) const {
    return architecture_.of(point.site);
  }

  // Whether a change shows the queries of a head at a position all keys.
  bool lifts_mask(const Point& plane, std::int64_t head, std::int64_t position) const;

  Architecture architecture_;
  std::vector<Intervention> interventions_;
};

// The mean of a point over positions of any number of texts, added up text by text, for SetRow.
class RowMean {
 public:
  void add(View<const float> values);  // (1, T, width) or (1, T, heads, width), T > 0
  std::vector<float> mean() const;     // of all that was added, which is not nothing

 private:
  std::vector<double> sums_;
  std::int64_t rows_ = 0;
};

// Throws Error{invalid_argument} for scores and patterns, whose rows differ in length.
void require_mean(const Architecture& architecture, const Point& point);

// The mean of a point over all positions of all texts. Throws what require_mean and RecordedPass
// throw, and Error{invalid_argument} for no texts.
std::vector<float> mean_row(const Transformer& model, const Point& point,
                            std::span<const Texts> texts);

// The values of a point in a pass over texts, for ReplaceWith. Throws what RecordedPass throws.
Tensor<float> values_at(const Transformer& model, const Point& point, const Texts& texts);

// The last dimension of a point, and what precedes it.
struct PointShape {
  std::int64_t width = 0;
  bool has_heads = false;  // (B, T, heads, width)
  bool is_plane = false;   // (B, heads, T, S)
  std::int64_t heads = 0;  // of queries, or the key/value heads that these share; 0: none
};
PointShape point_shape(const StackSpecification& config, PointKind kind);

}  // namespace heed
