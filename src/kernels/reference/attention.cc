// Attention by definition, one query row at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/dropout_hash.h"
#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {
namespace {

// Whether query t attends to memory position s: causal queries are the last positions of the
// memory.
template <class T>
bool visible(const AttentionInput<T>& input, std::int64_t t, std::int64_t s) {
  if (input.mask == Mask::full) return true;
  const std::int64_t own = input.key.extent(1) - input.query.extent(1) + input.query_offset + t;
  return s <= own && (input.window == 0 || s > own - input.window);
}

// The key head of query head h.
template <class T>
std::int64_t key_head(const AttentionInput<T>& input, std::int64_t h) {
  return h / (input.query.extent(2) / input.key.extent(2));
}

// The vector of a head at a position; its numbers are dense.
template <class T>
T* head_row(const View<T>& heads, std::int64_t b, std::int64_t position, std::int64_t h) {
  return &heads(b, position, h, 0);
}

// scale · query·key, before the soft cap.
template <class T>
T scaled_product(const AttentionInput<T>& input, std::int64_t b, std::int64_t h, std::int64_t t,
                 std::int64_t s) {
  const std::int64_t head_size = input.query.extent(3);
  const T *query = head_row(input.query, b, t, h),
          *key = head_row(input.key, b, s, key_head(input, h));
  T sum = 0;
  for (std::int64_t d = 0; d < head_size; ++d) sum += query[d] * key[d];
  return input.scale * sum;
}

// Where the position bias of a query and a memory position stands in its table.
template <class T>
std::int64_t distance(const AttentionInput<T>& input, std::int64_t t, std::int64_t s) {
  return s - (input.key.extent(1) - input.query.extent(1) + t) - input.position_bias.first;
}

template <class T>
T score(const AttentionInput<T>& input, std::int64_t b, std::int64_t h, std::int64_t t,
        std::int64_t s) {
  if (!visible(input, t, s)) return -std::numeric_limits<T>::infinity();
  const T product = scaled_product(input, b, h, t, s);
  const T cap = input.soft_cap;
  if (cap > T(0)) return cap * std::tanh(product / cap);
  return input.position_bias.present()
             ? product + input.position_bias.values(h, distance(input, t, s))
             : product;
}

// The derivative of a visible score by the product that the soft cap limits.
template <class T>
T cap_derivative(const AttentionInput<T>& input, T score) {
  const T cap = input.soft_cap;
  return cap > T(0) ? T(1) - score / cap * (score / cap) : T(1);
}

template <class T>
T keep_factor(const AttentionInput<T>& input, std::int64_t b, std::int64_t h, std::int64_t t,
              std::int64_t s) {
  const std::int64_t queries = input.query.extent(1);
  const std::int64_t positions = input.positions == 0 ? queries : input.positions;
  const std::int64_t row = (b * input.query.extent(2) + h) * positions + (positions - queries + t);
  return dropout_factor<T>(input.dropout, row, s);
}

template <class T, class Body>
void for_each_query(const AttentionInput<T>& input, Body&& body) {
  for (std::int64_t b = 0; b < input.query.extent(0); ++b) {
    for (std::int64_t h = 0; h < input.query.extent(2); ++h) {
      for (std::int64_t t = 0; t < input.query.extent(1); ++t) body(b, h, t);
    }
  }
}

template <class T>
void fill_zero(View<T> view) {
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t s = 0; s < view.extent(1); ++s) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        for (std::int64_t d = 0; d < view.extent(3); ++d) view(b, s, h, d) = T(0);
      }
    }
  }
}

}  // namespace

template <class T>
void attention_forward(const AttentionInput<T>& input, View<T> out, View<T> log_sum_exp) {
  checks::attention_output(input, out, log_sum_exp, "out");
  const std::int64_t memory = input.key.extent(1), head_size = input.key.extent(3);
  std::vector<T> row(static_cast<std::size_t>(memory));  // one row of scores, then of the pattern
  for_each_query(input, [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    // 1: scores = scale · query·keyᵀ, masked
    for (std::int64_t s = 0; s < memory; ++s) row[s] = score(input, b, h, t, s);
    // 2: pattern = softmax(scores)
    const T largest = *std::max_element(row.begin(), row.end());
    if (std::isinf(largest) && largest < T(0)) {  // nothing to see
      log_sum_exp(b, h, t) = largest;
      std::fill_n(head_row(out, b, t, h), head_size, T(0));
      return;
    }
    T sum = 0;
    for (T value : row) sum += std::exp(value - largest);
    log_sum_exp(b, h, t) = largest + std::log(sum);
    for (T& value : row) value = std::exp(value - log_sum_exp(b, h, t));
    // 3: kept = dropout(pattern)
    for (std::int64_t s = 0; s < memory; ++s) row[s] *= keep_factor(input, b, h, t, s);
    // 4: out = kept·value
    T* mixed = head_row(out, b, t, h);
    std::fill_n(mixed, head_size, T(0));
    for (std::int64_t s = 0; s < memory; ++s) {
      const T* value = head_row(input.value, b, s, key_head(input, h));
      for (std::int64_t d = 0; d < head_size; ++d) mixed[d] += row[s] * value[d];
    }
  });
}

template <class T>
void attention_backward(const AttentionInput<T>& input, View<const T> out,
                        View<const T> log_sum_exp, View<const T> d_out,
                        const AttentionGradients<T>& gradients) {
  checks::attention_output(input, out, log_sum_exp, "out");
  checks::heads(d_out, input.query.shape(), "d_out");
  checks::attention_gradients(input, gradients);
  const std::int64_t memory = input.key.extent(1), head_size = input.key.extent(3);
  fill_zero(gradients.query);
  fill_zero(gradients.key);
  fill_zero(gradients.value);
  for_each_query(input, [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    const std::int64_t g = key_head(input, h);
    const T *query = head_row(input.query, b, t, h), *mixed = head_row(out, b, t, h),
            *d_mixed = head_row(d_out, b, t, h);
    T* d_query = head_row(gradients.query, b, t, h);
    // Σ_s pattern·d_pattern = Σ_s kept·d_kept = Σ_d out·d_out, by 4 and the definition of out
    T inner = 0;
    for (std::int64_t d = 0; d < head_size; ++d) inner += mixed[d] * d_mixed[d];
    for (std::int64_t s = 0; s < memory; ++s) {
      if (!visible(input, t, s)) continue;
      const T capped = score(input, b, h, t, s);
      const T pattern = std::exp(capped - log_sum_exp(b, h, t));
      const T factor = keep_factor(input, b, h, t, s);
      // 4: out = kept·value
      const T* value = head_row(input.value, b, s, g);
      T* d_value = head_row(gradients.value, b, s, g);
      T d_kept = 0;
      for (std::int64_t d = 0; d < head_size; ++d) {
        d_kept += d_mixed[d] * value[d];
        d_value[d] += pattern * factor * d_mixed[d];
      }
      // 3: kept = pattern · factor
      const T d_pattern = d_kept * factor;
      // 2: pattern = softmax(scores)
      const T d_score = pattern * (d_pattern - inner);
      // 1: scores = scale · query·keyᵀ, capped
      const T d_product = d_score * cap_derivative(input, capped);
      if (gradients.position_bias.present()) {
        gradients.position_bias(h, distance(input, t, s)) += d_score;
      }
      const T d_scaled = input.scale * d_product;
      const T* key = head_row(input.key, b, s, g);
      T* d_key = head_row(gradients.key, b, s, g);
      for (std::int64_t d = 0; d < head_size; ++d) {
        d_query[d] += d_scaled * key[d];
        d_key[d] += d_scaled * query[d];
      }
    }
  });
}

template <class T>
void merge_attention(const AttentionPart<T>& part, View<T> out, View<T> log_sum_exp) {
  checks::attention_part(part, out, log_sum_exp);
  for (std::int64_t b = 0; b < out.extent(0); ++b) {
    for (std::int64_t t = 0; t < out.extent(1); ++t) {
      for (std::int64_t h = 0; h < out.extent(2); ++h) {
        T& before = log_sum_exp(b, h, t);
        const T added = part.log_sum_exp(b, h, t);
        const T maximum = std::max(before, added);
        if (std::isinf(maximum)) continue;  // neither saw anything
        const T all = maximum + std::log(std::exp(before - maximum) + std::exp(added - maximum));
        for (std::int64_t d = 0; d < out.extent(3); ++d) {
          out(b, t, h, d) = std::exp(before - all) * out(b, t, h, d) +
                            std::exp(added - all) * part.out(b, t, h, d);
        }
        before = all;
      }
    }
  }
}

template <class T>
void attention_scores_tile(const AttentionInput<T>& input, const AttentionTile& tile, View<T> out) {
  checks::attention_tile(input, tile, out);
  for (std::int64_t t = tile.query_begin; t < tile.query_end; ++t) {
    for (std::int64_t s = tile.key_begin; s < tile.key_end; ++s) {
      out(t - tile.query_begin, s - tile.key_begin) = score(input, tile.batch, tile.head, t, s);
    }
  }
}

template <class T>
void attention_pattern_tile(const AttentionInput<T>& input, View<const T> log_sum_exp,
                            const AttentionTile& tile, View<T> out) {
  checks::attention_pattern(input, log_sum_exp);
  attention_scores_tile(input, tile, out);
  for (std::int64_t t = tile.query_begin; t < tile.query_end; ++t) {
    for (std::int64_t s = 0; s < out.extent(1); ++s) {
      T& value = out(t - tile.query_begin, s);
      value = std::exp(value - log_sum_exp(tile.batch, tile.head, t));
    }
  }
}

template void attention_forward<float>(const AttentionInput<float>&, View<float>, View<float>);
template void attention_forward<double>(const AttentionInput<double>&, View<double>, View<double>);
template void attention_backward<float>(const AttentionInput<float>&, View<const float>,
                                        View<const float>, View<const float>,
                                        const AttentionGradients<float>&);
template void attention_backward<double>(const AttentionInput<double>&, View<const double>,
                                         View<const double>, View<const double>,
                                         const AttentionGradients<double>&);
template void merge_attention<float>(const AttentionPart<float>&, View<float>, View<float>);
template void merge_attention<double>(const AttentionPart<double>&, View<double>, View<double>);
template void attention_scores_tile<float>(const AttentionInput<float>&, const AttentionTile&,
                                           View<float>);
template void attention_scores_tile<double>(const AttentionInput<double>&, const AttentionTile&,
                                            View<double>);
template void attention_pattern_tile<float>(const AttentionInput<float>&, View<const float>,
                                            const AttentionTile&, View<float>);
template void attention_pattern_tile<double>(const AttentionInput<double>&, View<const double>,
                                             const AttentionTile&, View<double>);

}  // namespace heed::kernels::reference
