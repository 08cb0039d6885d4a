// Attention of a few queries, row by row: the path of cached decoding, for a memory in any cache
// type.
#pragma once

#include <cstdint>

#include "kernels/cpu/attention_head.h"
#include "kernels/quantised_cache.h"

namespace heed::kernels {

// Keys or values of one head, in any format.
struct MemoryRows {
  CacheType type = CacheType::f32;
  const std::byte* data = nullptr;
  std::int64_t stride = 0;        // bytes from row to row
  const float* scales = nullptr;  // of int8
  std::int64_t scale_stride = 0;

  template <class Element>
  Rows<const Element> as() const {
    return {reinterpret_cast<const Element*>(data),
            stride / static_cast<std::int64_t>(sizeof(Element))};
  }
};

struct HeadMemory {
  MemoryRows key;
  MemoryRows value;
};

// Query `query` of `head` over positions [key_begin, key_end) of `memory`, all visible to it:
// unnormalised out (D), and the maximum and sum that normalise it, with scores in units of log 2.
// Reads each key and value once, in order, on one thread.
struct PartialSoftmax {
  float maximum = 0.0F;
  float sum = 0.0F;
};
struct MemoryRange {
  std::int64_t begin;
  std::int64_t end;
};
PartialSoftmax attend_row(const Head& head, const HeadMemory& memory, std::int64_t query,
                          const MemoryRange& range, float* out);

// Quantises or dequantises a row of `size` numbers; `scale` is used by int8 only.
void quantise_row(CacheType type, const float* from, std::int64_t size, std::byte* to,
                  float* scale);
void restore_row(CacheType type, const std::byte* from, const float* scale, std::int64_t size,
                 float* to);

// attention_forward for T <= few_queries.
void attend_few_queries(const AttentionInput<float>& input, View<float> out,
                        View<float> log_sum_exp);

}  // namespace heed::kernels
