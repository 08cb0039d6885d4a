// Attention of long texts on demand: records query, key and log-sum-exp of selected layers, and
// computes parts of a head's plane from them, exact to rounding. Memory grows with T, not with T².
// Scores equal those of the pass: if it rounded queries and keys to bf16, the rounded ones are
// stored (and also the unrounded keys, if later positions of a generation use f32). Queries and
// keys are those of the scores, in their positions; query heads that share a key share its copy.
// Of an encoder-decoder, one of its three kinds of attention.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/attention.h"
#include "kernels/operands.h"
#include "microscope/attention/visible_keys.h"
#include "model/architecture.h"
#include "model/attention_site.h"
#include "model/probe.h"
#include "tensor/tensor.h"

namespace heed {

class LazyAttention final : public Probe {
 public:
  // For up to `queries` and `keys` positions of one sequence, in the given layers (empty: all).
  // Throws Error{invalid_argument} for a layer that the model does not have.
  LazyAttention(const Architecture& architecture, AttentionSite site, std::int64_t queries,
                std::int64_t keys, std::vector<std::int64_t> layers = {});
  // Of a model of one stack.
  LazyAttention(const StackSpecification& config, std::vector<std::int64_t> layers,
                std::int64_t positions);
  // Bytes of one layer.
  static std::int64_t bytes_needed(const AttentionSpecification& attention, std::int64_t queries,
                                   std::int64_t keys);
  std::int64_t bytes() const;  // of what was recorded

  // Each pass appends its positions: a prompt, then the steps of a generation.
  bool wants(const Point&) const override { return false; }
  void observe(const Point&, View<const float>) override {}
  bool wants_attention(std::int64_t layer) const override;
  void observe_attention(std::int64_t layer, const kernels::AttentionInput<float>& input,
                         View<const float> log_sum_exp) override;
  bool wants_attention_at(const Point& pattern) const override;

  const std::vector<std::int64_t>& layers() const { return layers_; }
  std::int64_t heads() const { return attention_.query_heads; }
  std::int64_t positions(std::int64_t layer) const;  // of queries, observed so far
  std::int64_t keys(std::int64_t layer) const;  // as many, but those of the source across two texts
  // Of the positions observed, those that a query attends to.
  VisibleKeys visible_keys(std::int64_t layer, std::int64_t query) const;

  // (⌈queries / pool⌉, ⌈keys / pool⌉). Cells at the end of the region pool fewer elements.
  // Means of the pattern include masked elements as zeros; means of scores exclude them, and are −∞
  // if all are masked. Throws Error{invalid_argument} for a layer that was not recorded, an invalid
  // head or pool, and an empty region.
  Tensor<float> region(const AttentionRegion& region) const;

  std::vector<float> row(std::int64_t layer, std::int64_t head, std::int64_t query) const;
  std::vector<float> column(std::int64_t layer, std::int64_t head, std::int64_t key) const;

  // The largest weights from or to a position, in descending order, of those that are not masked.
  std::vector<AttendedPosition> most_attended(std::int64_t layer, std::int64_t head,
                                              std::int64_t query, std::size_t count) const;
  std::vector<AttendedPosition> most_attending(std::int64_t layer, std::int64_t head,
                                               std::int64_t key, std::size_t count) const;

  // The kernel operands of one head: query, key and (unused) value (1, T, 1, D), log_sum_exp
  // (1, 1, T). Queries and keys have the precision of the pass of position `query`, which is the
  // same for all positions up to precision_end().
  kernels::AttentionInput<float> head_input(std::int64_t layer, std::int64_t head,
                                            std::int64_t query) const;
  std::int64_t precision_end(std::int64_t layer, std::int64_t query) const;
  View<const float> log_sum_exp(std::int64_t layer, std::int64_t head) const;

 private:
  struct Keys {
    Tensor<float> rows;          // (G, capacity, D); empty if unused
    std::int64_t positions = 0;  // valid rows
  };
  // Positions from `begin` on, up to the next span, whose passes had one precision.
  struct Span {
    std::int64_t begin = 0;
    kernels::Precision precision = kernels::Precision::f32;
  };
  struct Layer {
    Tensor<float> query;        // (H, capacity, D), each row in the precision of its pass
    Keys keys;                  // of passes in f32
    Keys rounded_keys;          // rounded, of passes in bf16
    Tensor<float> log_sum_exp;  // (H, capacity)
    Tensor<float> bias;         // (H, R): of the distances from first_distance on; absent: none
    std::int64_t first_distance = 0;
    std::int64_t positions = 0;
    std::int64_t memory = 0;
    std::vector<Span> spans;
  };
  const Layer& at(std::int64_t layer) const;
  void keep_keys(Keys& keys, View<const float> memory, kernels::Precision precision) const;
  void keep_bias(Layer& kept, const kernels::PositionBias<float>& bias) const;
  void make_layers();

  Point pattern_{PointKind::pattern};  // of any layer
  std::vector<std::int64_t> layers_;
  AttentionSpecification attention_;
  std::int64_t capacity_;      // of queries
  std::int64_t key_capacity_;  // the same, but for attention across two texts
  std::vector<Layer> kept_;    // as in layers_
};

// Cuts the region off at the end of the plane. Throws what LazyAttention::region() throws.
AttentionRegion checked_region(const LazyAttention& attention, AttentionRegion region);

// Sums and maxima of a region's cells, for any power of two as pool.
struct PooledRegion {
  Tensor<float> sum;
  Tensor<float> largest;
};
PooledRegion pool_region(const LazyAttention& attention, const AttentionRegion& region);

// Pools elements (rows, columns) in memory.
PooledRegion pool_elements(View<const float> elements, std::int64_t pool);

// Pools `factor` × `factor` cells (a power of two) into one.
PooledRegion pool_further(const PooledRegion& fine, std::int64_t factor);

// The cells of region(): means or maxima of pooled elements.
Tensor<float> finish_pooling(const LazyAttention& attention, const PooledRegion& pooled,
                             const AttentionRegion& region);

}  // namespace heed
