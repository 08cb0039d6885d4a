// Attention of long texts, looked at piece by piece: query, key and log-sum-exp of the wanted
// layers are kept, and what is asked of a head is computed from them, exact to rounding. What is
// kept grows with T, not with T². Scores are those that the pass computed: where it rounded queries
// and keys to bf16, rounded ones are kept (and the keys unrounded too where later positions of a
// generation were read in f32).
#pragma once

#include <cstdint>
#include <vector>

#include "heed/attention.h"
#include "kernels/operands.h"
#include "model/config.h"
#include "model/probe.h"
#include "tensor/tensor.h"

namespace heed {

class LazyAttention final : public Probe {
 public:
  // Room for `positions` of one sequence, in these layers, none meaning all. Throws
  // Error{invalid_argument} for a layer that the model does not have.
  LazyAttention(const GptConfig& config, std::vector<std::int64_t> layers, std::int64_t positions);
  static std::int64_t bytes_needed(const GptConfig& config, std::int64_t layers,
                                   std::int64_t positions);

  // Each pass adds its positions behind those of the ones before: a prompt, then step by step.
  bool wants(const Site&) const override { return false; }
  void observe(const Site&, View<const float>) override {}
  bool wants_attention(std::int64_t layer) const override;
  void observe_attention(std::int64_t layer, const kernels::AttentionInput<float>& input,
                         View<const float> log_sum_exp) override;

  const std::vector<std::int64_t>& layers() const { return layers_; }
  std::int64_t heads() const { return heads_; }
  std::int64_t positions(std::int64_t layer) const;  // seen so far

  // (⌈queries / pool⌉, ⌈keys / pool⌉). A cell at the end of the region stands for fewer elements.
  // Means of the pattern count masked elements as the zeros that they are; those of scores leave
  // them out, and are −∞ where all are masked. Throws Error{invalid_argument} for a layer that was
  // not kept, a head or a pool that does not exist, an empty region.
  Tensor<float> region(const AttentionRegion& region) const;

  std::vector<float> row(std::int64_t layer, std::int64_t head, std::int64_t query) const;
  std::vector<float> column(std::int64_t layer, std::int64_t head, std::int64_t key) const;

  // What a position attends to most, and what attends most to it; the largest weight first.
  std::vector<AttendedPosition> most_attended(std::int64_t layer, std::int64_t head,
                                              std::int64_t query, std::size_t count) const;
  std::vector<AttendedPosition> most_attending(std::int64_t layer, std::int64_t head,
                                               std::int64_t key, std::size_t count) const;

  // One head as kernels take it: query, key and (unused) value (1, T, 1, D), log_sum_exp (1, 1, T).
  // Queries and keys are as the pass that read position `query` multiplied them; so are those of
  // all positions before precision_end().
  kernels::AttentionInput<float> head_input(std::int64_t layer, std::int64_t head,
                                            std::int64_t query) const;
  std::int64_t precision_end(std::int64_t layer, std::int64_t query) const;
  View<const float> log_sum_exp(std::int64_t layer, std::int64_t head) const;

 private:
  struct Keys {
    Tensor<float> rows;          // (H, capacity, D): one head's rows lie together; empty: none yet
    std::int64_t positions = 0;  // filled
  };
  // Positions from `begin` on were read by passes of one precision.
  struct Span {
    std::int64_t begin = 0;
    kernels::Precision precision = kernels::Precision::f32;
  };
  struct Layer {
    Tensor<float> query;        // (H, capacity, D), each row as its pass multiplied it
    Keys keys;                  // as passes in f32 multiply them
    Keys quantised_keys;            // and those in bf16
    Tensor<float> log_sum_exp;  // (H, capacity)
    std::int64_t positions = 0;
    std::vector<Span> spans;
  };
  const Layer& at(std::int64_t layer) const;
  void keep_keys(Keys& keys, View<const float> memory, kernels::Precision precision) const;

  std::vector<std::int64_t> layers_;
  std::int64_t heads_;
  std::int64_t head_size_;
  std::int64_t capacity_;
  std::vector<Layer> kept_;  // as in layers_
};

// The region cut off where the plane ends. Throws what LazyAttention::region throws.
AttentionRegion checked_region(const LazyAttention& attention, AttentionRegion region);

// Sums and largest elements of a region's cells, for any power of two as a pool.
struct PooledRegion {
  Tensor<float> sum;
  Tensor<float> largest;
};
PooledRegion pool_region(const LazyAttention& attention, const AttentionRegion& region);

// The cells of elements (rows, columns) that are in memory.
PooledRegion pool_elements(View<const float> elements, std::int64_t pool);

// The same cells, `factor` × `factor` of them (a power of two) made one.
PooledRegion pool_further(const PooledRegion& fine, std::int64_t factor);

// Cells as region() has them, for the elements that they stand for.
Tensor<float> finish_pooling(const PooledRegion& pooled, const AttentionRegion& region);

}  // namespace heed
