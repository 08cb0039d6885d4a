// Row statistics and pooled tiles of attention, from the pattern itself.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {

template <class T>
void attention_row_statistics(const AttentionInput<T>& input, View<const T> log_sum_exp,
                              View<const std::int32_t> tokens,
                              const AttentionRowStatistics<T>& statistics) {
  checks::row_statistics(input, log_sum_exp, tokens, statistics);
  const std::int64_t queries = input.query.extent(1), memory = input.key.extent(1);
  std::vector<T> row(static_cast<std::size_t>(memory));
  const auto each_query = [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    const std::int64_t own = memory - queries + t;
    const View<T> p(row.data(), {1, memory});
    attention_pattern_tile<T>(input, log_sum_exp,
                              {.batch = b,
                               .head = h,
                               .query_begin = t,
                               .query_end = t + 1,
                               .key_begin = 0,
                               .key_end = memory},
                              p);
    T entropy = 0, distance = 0, duplicate = 0, induction = 0, largest = 0;
    const bool full = input.mask == Mask::full;
    for (std::int64_t s = 0; s < (full ? memory : own + 1); ++s) {
      if (row[s] > T(0)) entropy -= row[s] * std::log(row[s]);
      distance += row[s] * T(own - s);
      if (full ? s != own : s >= 1 && s < own - 1) largest = std::max(largest, row[s]);
      if (!tokens.present()) continue;
      const std::int32_t token = tokens(b, own);
      if (s != own && tokens(b, s) == token) duplicate += row[s];
      const bool follows = s >= 1 && tokens(b, s - 1) == token;
      if (follows && (!full || (s != own && s != own + 1))) induction += row[s];
    }
    statistics.entropy(b, h, t) = entropy;
    statistics.distance(b, h, t) = distance;
    statistics.first(b, h, t) = row[0];
    statistics.self(b, h, t) = row[own];
    statistics.previous(b, h, t) = own >= 1 ? row[own - 1] : T(0);
    statistics.duplicate(b, h, t) = duplicate;
    statistics.induction(b, h, t) = induction;
    statistics.largest(b, h, t) = largest;
  };
  for (std::int64_t b = 0; b < input.query.extent(0); ++b) {
    for (std::int64_t h = 0; h < input.query.extent(2); ++h) {
      for (std::int64_t t = 0; t < queries; ++t) each_query(b, h, t);
    }
  }
}

template <class T>
void attention_pooled_tile(const AttentionInput<T>& input, View<const T> log_sum_exp,
                           const AttentionTile& tile, std::int64_t pool,
                           const PooledAttention<T>& out) {
  checks::pooled_tile(input, tile, pool, out);
  const bool of_pattern = log_sum_exp.present();
  const std::int64_t rows = tile.query_end - tile.query_begin;
  const std::int64_t columns = tile.key_end - tile.key_begin;
  std::vector<T> elements(static_cast<std::size_t>(rows * columns));
  const View<T> whole(elements.data(), {rows, columns});
  if (of_pattern) {
    attention_pattern_tile(input, log_sum_exp, tile, whole);
  } else {
    attention_scores_tile(input, tile, whole);
  }
  const std::int64_t unseen = input.key.extent(1) - input.query.extent(1) + tile.query_begin;
  for (std::int64_t i = 0; i < out.sum.extent(0); ++i) {
    for (std::int64_t j = 0; j < out.sum.extent(1); ++j) {
      T sum = 0;
      T largest = of_pattern ? T(0) : -std::numeric_limits<T>::infinity();
      for (std::int64_t t = i * pool; t < std::min((i + 1) * pool, rows); ++t) {
        for (std::int64_t s = j * pool; s < std::min((j + 1) * pool, columns); ++s) {
          const std::int64_t distance = tile.key_begin + s - (unseen + t);
          const bool outside = input.window > 0 && distance <= -input.window;
          if (input.mask == Mask::causal && (distance > 0 || outside)) continue;
          sum += whole(t, s);
          largest = std::max(largest, whole(t, s));
        }
      }
      out.sum(i, j) = sum;
      out.largest(i, j) = largest;
    }
  }
}

template void attention_row_statistics<float>(const AttentionInput<float>&, View<const float>,
                                              View<const std::int32_t>,
                                              const AttentionRowStatistics<float>&);
template void attention_row_statistics<double>(const AttentionInput<double>&, View<const double>,
                                               View<const std::int32_t>,
                                               const AttentionRowStatistics<double>&);
template void attention_pooled_tile<float>(const AttentionInput<float>&, View<const float>,
                                           const AttentionTile&, std::int64_t,
                                           const PooledAttention<float>&);
template void attention_pooled_tile<double>(const AttentionInput<double>&, View<const double>,
                                            const AttentionTile&, std::int64_t,
                                            const PooledAttention<double>&);

}  // namespace heed::kernels::reference
