// Rectangles of a pattern on a device, and summaries of it.
#include "kernels/attention_summaries.h"

#include "kernels/backends.h"
#include "kernels/cuda/attention_operands.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

// Without results.
HeedAttentionTile plain_tile(const AttentionInput<float>& input, const AttentionTile& tile,
                             const View<const float>& log_sum_exp) {
  HeedAttentionTile plain{};
  plain.attention = cuda::plain_attention(input);
  plain.attention.log_sum_exp = const_cast<float*>(log_sum_exp.data());
  plain.of_pattern = log_sum_exp.present() ? 1 : 0;
  plain.batch = static_cast<int>(tile.batch);
  plain.head = static_cast<int>(tile.head);
  plain.query_begin = static_cast<int>(tile.query_begin);
  plain.query_end = static_cast<int>(tile.query_end);
  plain.key_begin = static_cast<int>(tile.key_begin);
  plain.key_end = static_cast<int>(tile.key_end);
  return plain;
}

void launch_rectangle(const AttentionInput<float>& input, const AttentionTile& tile,
                      const View<const float>& log_sum_exp, const View<float>& out) {
  static const cuda::Function<HeedAttentionTile> launch("attention_rectangle");
  HeedAttentionTile plain = plain_tile(input, tile, log_sum_exp);
  plain.out = out.data();
  plain.out_row = out.stride(0);
  launch(plain);
}

}  // namespace

void cuda::attention_scores_tile(const AttentionInput<float>& input, const AttentionTile& tile,
                                 View<float> out) {
  checks::attention_tile(input, tile, out);
  launch_rectangle(input, tile, {}, out);
}

void cuda::attention_pattern_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                                  const AttentionTile& tile, View<float> out) {
  checks::attention_tile(input, tile, out);
  checks::attention_pattern(input, log_sum_exp);
  launch_rectangle(input, tile, log_sum_exp, out);
}

void cuda::attention_pooled_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                                 const AttentionTile& tile, std::int64_t pool,
                                 const PooledAttention<float>& out) {
  checks::pooled_tile(input, tile, pool, out);
  if (log_sum_exp.present()) checks::attention_pattern(input, log_sum_exp);
  static const Function<HeedAttentionTile> launch("attention_pooled_rectangle");
  HeedAttentionTile plain = plain_tile(input, tile, log_sum_exp);
  plain.pool = static_cast<int>(pool);
  plain.sum = out.sum.data();
  plain.sum_row = out.sum.stride(0);
  plain.largest = out.largest.data();
  plain.largest_row = out.largest.stride(0);
  launch(plain);
}

void cuda::attention_row_statistics(const AttentionInput<float>& input,
                                    View<const float> log_sum_exp, View<const std::int32_t> tokens,
                                    const AttentionRowStatistics<float>& statistics) {
  checks::row_statistics(input, log_sum_exp, tokens, statistics);
  static const Function<HeedRowStatistics> launch("attention_row_statistics");
  const Uploaded<std::int32_t> uploaded(tokens.present() ? tokens.span()
                                                         : std::span<const std::int32_t>{});
  HeedRowStatistics plain{};
  plain.attention = plain_attention(input);
  plain.attention.log_sum_exp = const_cast<float*>(log_sum_exp.data());
  plain.tokens = uploaded.data();
  plain.full = input.mask == Mask::full ? 1 : 0;
  plain.entropy = statistics.entropy.data();
  plain.distance = statistics.distance.data();
  plain.first = statistics.first.data();
  plain.self = statistics.self.data();
  plain.previous = statistics.previous.data();
  plain.duplicate = statistics.duplicate.data();
  plain.induction = statistics.induction.data();
  plain.largest = statistics.largest.data();
  if (log_sum_exp.size() > 0) launch(plain);
}

}  // namespace heed::kernels
