// Attention to a memory in parts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

// Rows of a head that a thread merges at least.
constexpr std::int64_t min_rows = 64;

struct MergedRow {
  const float* part;
  float part_log_sum_exp;
  float* out;
  float* log_sum_exp;
};

void merge_row(const MergedRow& row, std::int64_t size) {
  const float before = *row.log_sum_exp, added = row.part_log_sum_exp;
  if (added == -std::numeric_limits<float>::infinity()) return;
  const float maximum = std::max(before, added);
  const float kept = std::exp(before - maximum), gained = std::exp(added - maximum);
  const float sum = kept + gained, keep = kept / sum, gain = gained / sum;
  for (std::int64_t i = 0; i < size; ++i) row.out[i] = keep * row.out[i] + gain * row.part[i];
  *row.log_sum_exp = maximum + std::log(sum);
}

}  // namespace

void cpu::merge_attention(const AttentionPart<float>& part, View<float> out,
                          View<float> log_sum_exp) {
  checks::attention_part(part, out, log_sum_exp);
  const std::int64_t batch = out.extent(0), queries = out.extent(1), heads = out.extent(2);
  parallel_ranges(batch * queries, min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t b = row / queries, t = row % queries;
      for (std::int64_t h = 0; h < heads; ++h) {
        merge_row({.part = &part.out(b, t, h, 0),
                   .part_log_sum_exp = part.log_sum_exp(b, h, t),
                   .out = &out(b, t, h, 0),
                   .log_sum_exp = &log_sum_exp(b, h, t)},
                  out.extent(3));
      }
    }
  });
}

}  // namespace heed::kernels
