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

// One query of consecutive heads that share keys and values.
struct QueryGroup {
  Head head;  // the first
  std::int64_t heads = 1;
  std::int64_t query = 0;
  std::int64_t query_step = 0;  // floats from head to head
  std::int64_t row_step = 0;    // of dropout, from head to head
  std::int64_t bias_step = 0;   // floats from head to head
};

struct MemoryRange {
  std::int64_t begin;
  std::int64_t end;
};

// The group's queries over a range of `memory`, all visible to them. The result of head k is at
// out + k·out_step: unnormalised out (D), and the maximum and sum that normalise it, with scores in
// units of log 2. On one thread, which reads each key and value from memory once, in order; a
// head's result does not depend on the others.
void attend_rows(const QueryGroup& group, const HeadMemory& memory, const MemoryRange& range,
                 float* out, std::int64_t out_step);

// Quantises or dequantises a row of `size` numbers; `scale` is used by int8 only.
void quantise_row(CacheType type, const float* from, std::int64_t size, std::byte* to,
                  float* scale);
void restore_row(CacheType type, const std::byte* from, const float* scale, std::int64_t size,
                 float* to);

// attention_forward for T <= few_queries.
void attend_few_queries(const AttentionInput<float>& input, View<float> out,
                        View<float> log_sum_exp);

}  // namespace heed::kernels
