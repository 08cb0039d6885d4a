// Attention backward over the query heads of a key head, and any tile of a pattern.
#include "kernels/cpu/attention_blocks.h"
#include "kernels/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_backward.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <limits>
#include <numbers>

#include "kernels/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Per-query values of a block, one per lane.
struct BlockRows {
  HWY_ALIGN float log_sum_exp[query_block];  // in powers of two
  HWY_ALIGN float inner[query_block];        // scale · Σ out·d_out
};

// Turns column vector j of `scores` into the pattern that forward mixed values with, and of
// `products` (scale·d_out·valueᵀ) into the gradient of scores, times scale. With a
// soft cap, of `cap` in powers of two, scores are cap·tanh of what the gradient is passed on to;
// only `general` columns have windows or caps.
template <bool dropping, bool general>
HWY_INLINE void DifferentiateColumn(const TilePlace& place, std::int64_t j, const BlockRows& rows,
                                    const TileDropout& dropout, float keep_scale, float cap,
                                    RowsAhead<4>& ahead, float* HWY_RESTRICT scores,
                                    float* HWY_RESTRICT products) {
  const Floats d;
  const ColumnLimits limits = LimitsOf<general>(place, j);
  const Float log_sum_exp = hn::Load(d, rows.log_sum_exp + j);
  const Float inner = hn::Load(d, rows.inner + j);
  const Float inverse_cap = hn::Set(d, general && cap > 0.0F ? 1.0F / cap : 0.0F);
  const auto score_at = [&](std::int64_t i) HEED_INLINE_LAMBDA {
    return hn::Load(d, scores + i * query_block + j);
  };
  const auto differentiate = [&](std::int64_t i, Float score, Float pattern) HEED_INLINE_LAMBDA {
    const std::int64_t at = i * query_block + j;
    Float product = hn::Load(d, products + at);
    Float kept = pattern;
    if constexpr (dropping) {
      const auto mask = dropout.Kept(i, j);
      product = hn::IfThenElseZero(mask, product);
      kept = hn::IfThenElseZero(mask, hn::Mul(kept, hn::Set(d, keep_scale)));
    }
    hn::Store(kept, d, scores + at);
    Float gradient = hn::Mul(pattern, hn::Sub(product, inner));
    if constexpr (general) {
      const Float tanh = hn::Mul(score, inverse_cap);
      gradient = hn::Mul(gradient, hn::NegMulAdd(tanh, tanh, hn::Set(d, 1.0F)));
    }
    hn::Store(gradient, d, products + at);
  };
  const auto pattern_of = [&](Float score) HEED_INLINE_LAMBDA {
    return Exp2Clamped(d, hn::Sub(score, log_sum_exp));
  };
  const auto clear = [&](std::int64_t i) HEED_INLINE_LAMBDA {
    hn::Store(hn::Zero(d), d, scores + i * query_block + j);
    hn::Store(hn::Zero(d), d, products + i * query_block + j);
  };
  const auto differentiate_some = [&](std::int64_t i, auto) HEED_INLINE_LAMBDA {
    // products of masked lanes are computed, and whatever they are must not survive
    const auto visible = VisibleLanes<general>(place, i, j);
    float* const product = products + i * query_block + j;
    hn::Store(hn::IfThenElse(visible, hn::Load(d, product), inner), d, product);
    Float score = score_at(i);
    if constexpr (general) score = hn::IfThenElseZero(visible, score);
    differentiate(i, score, hn::IfThenElseZero(visible, pattern_of(score)));
  };
  for (std::int64_t i = 0; i < limits.begin; ++i) clear(i);
  ByFours(limits.begin, limits.whole_begin, differentiate_some);
  ByFours(limits.whole_begin, limits.whole, [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    ahead.Step(chain);
    const Float score = score_at(i);
    differentiate(i, score, pattern_of(score));
  });
  ByFours(limits.whole, limits.part, differentiate_some);
  for (std::int64_t i = limits.part; i < place.keys; ++i) clear(i);
}

template <bool dropping, bool general>
HWY_NOINLINE void DifferentiateTile(const TilePlace& place, const BlockRows& rows,
                                    const TileDropout& dropout, float keep_scale, float cap,
                                    RowsAhead<4>& ahead, float* HWY_RESTRICT scores,
                                    float* HWY_RESTRICT products) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  for (std::int64_t j = 0; j < place.queries; j += lanes) {
    DifferentiateColumn<dropping, general>(place, j, rows, dropout, keep_scale, cap, ahead, scores,
                                           products);
  }
}

HWY_INLINE float Dot(const float* x, const float* y, std::int64_t size) {
  const Floats d;
  Float sum = hn::Zero(d);
  ForEachVector(static_cast<std::size_t>(size),
                [&](std::size_t, auto load, auto)
                    HEED_INLINE_LAMBDA { sum = hn::MulAdd(load(x), load(y), sum); });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

HWY_INLINE void CopyRows(Rows<const float> from, std::int64_t count, std::int64_t head_size,
                         Rows<float> to) {
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(from[i], head_size, to[i]);
}

HWY_INLINE void AddRows(Rows<const float> from, std::int64_t count, std::int64_t head_size,
                        Rows<float> to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const row = from[i];
    float* const sum = to[i];
    for (std::int64_t k = 0; k < head_size; ++k) sum[k] += row[k];
  }
}

// A range of the memory of a group's key head, and its gradients: in place, or copied to dense
// buffers if Multiply cannot read them in place or if they are visited often.
struct BackwardMemory {
  Rows<const float> key;
  Rows<const float> value;
  Rows<float> d_key;
  Rows<float> d_value;
  bool copied;
};

// The memory [begin, end), of whose tiles those at first, first + step, ... are attended to.
struct Stretch {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first;
  std::int64_t step;
};

// The most memory rows copied at once: 8 MiB for a head size of 64, so that working memory does not
// grow with the context.
HWY_INLINE std::int64_t LongestStretch(std::int64_t columns, std::int64_t parts) {
  const std::int64_t rows = std::max<std::int64_t>(8192 * 64 / columns, 1);
  return RoundUp(rows, key_block * parts);
}

HWY_INLINE BackwardMemory PlaceMemory(const BackwardGroup& group, const Stretch& stretch) {
  const Head head = group.head(0);
  const HeadGradients gradients = group.gradients(0);
  const std::int64_t size = head.head_size, columns = WholeVectors(size);
  const auto [begin, end, first, step] = stretch;
  if (columns == size && head.precision == Precision::f32 &&
      group.heads * head.queries < blocks_worth_packing * query_block) {
    return {{head.key[begin], head.key.stride},
            {head.value[begin], head.value.stride},
            {gradients.key[begin], gradients.key.stride},
            {gradients.value[begin], gradients.value.stride},
            false};
  }
  const std::int64_t plane = (end - begin) * columns;
  float* const key = scratch(Scratch::memory, static_cast<std::size_t>(4 * plane));
  float* const value = key + plane;
  for (std::int64_t s = first; s < end; s += step) {
    const std::int64_t count = std::min(key_block, end - s), to = (s - begin) * columns;
    CopyOperand(head, {head.key[s], head.key.stride}, count, key + to);
    CopyOperand(head, {head.value[s], head.value.stride}, count, value + to);
  }
  return {{key, columns},
          {value, columns},
          {value + plane, columns},
          {value + 2 * plane, columns},
          true};
}

// Working memory of a call, in its thread's scratch buffer.
struct BackwardBuffers {
  explicit BackwardBuffers(std::int64_t columns) {
    const std::int64_t tile = query_block * key_block, block = query_block * columns;
    scores = scratch(Scratch::item, static_cast<std::size_t>(2 * tile + 5 * block));
    products = scores + tile;
    query_transposed = products + tile;
    d_out_transposed = query_transposed + block;
    d_query = d_out_transposed + block;
    padded_query = d_query + block;
    padded_d_out = padded_query + block;
  }
  float *scores, *products;                      // (keys, queries)
  float *query_transposed, *d_out_transposed;    // (D, queries)
  float *d_query, *padded_query, *padded_d_out;  // (queries, columns)
};

HWY_INLINE void ClearRows(const BackwardMemory& memory, std::int64_t begin, std::int64_t end,
                          std::int64_t size) {
  for (std::int64_t row = begin; row < end; ++row) {
    std::fill_n(memory.d_key[row], size, 0.0F);
    std::fill_n(memory.d_value[row], size, 0.0F);
  }
}

// One query head, against the stretch. Memory rows before `met` have gradients to add to.
HWY_INLINE void AttendToStretch(const Head& head, const HeadGradients& gradients,
                                const Stretch& stretch, const BackwardMemory& memory,
                                std::int64_t met) {
  const std::int64_t size = head.head_size, columns = WholeVectors(size);
  const auto [start, end, first_of_part, step] = stretch;
  const BackwardBuffers buffers(columns);
  const bool dropping = head.dropout.rate > 0.0F, rounding = head.precision == Precision::bf16;
  const float keep_scale = 1.0F / (1.0F - head.dropout.rate);
  constexpr float unit = std::numbers::log2e_v<float>;
  const float cap = head.soft_cap * unit;
  BlockRows rows{};
  TileDropout dropout;
  const bool general = head.window != unlimited || cap > 0.0F;
  const std::int64_t blind = std::max<std::int64_t>(start - head.visible, 0);
  for (std::int64_t begin = blind / query_block * query_block;
       begin < head.queries && visible_begin(head, begin) < end; begin += query_block) {
    const std::int64_t queries = std::min(query_block, head.queries - begin);
    const Rows<const float> d_out{gradients.d_out[begin], gradients.d_out.stride};
    const Rows<const float> query_rows =
        Operand(head, {head.query[begin], head.query.stride}, queries, buffers.padded_query);
    const Rows<const float> d_out_rows = Operand(head, d_out, queries, buffers.padded_d_out);
    PackTransposed(query_rows, queries, size, query_factor(head, unit), buffers.query_transposed);
    PackTransposed(d_out_rows, queries, size, head.scale * keep_scale, buffers.d_out_transposed);
    for (std::int64_t j = 0; j < queries; ++j) {
      rows.log_sum_exp[j] = gradients.log_sum_exp[begin + j] * unit;
      rows.inner[j] = head.scale * Dot(gradients.out[begin + j], d_out[j], size);
    }
    if (dropping) dropout.Prepare(head, begin, queries);

    std::fill_n(buffers.d_query, queries * columns, 0.0F);
    const std::int64_t last = std::min(visible_end(head, begin + queries), end);
    const std::int64_t skipped =
        std::max<std::int64_t>(first_tile(head, begin) - first_of_part + step - 1, 0) / step;
    const std::int64_t first_row = first_of_part + skipped * step - start;
    for (std::int64_t s = first_row + start; s < last; s += step) {
      TilePlace place = PlaceTile(head, begin, queries, s);
      place.keys = std::min(place.keys, last - s);
      const std::int64_t row = s - start;
      const Rows<const float> key{memory.key[row], memory.key.stride};
      // 1: scores = scale · query·keyᵀ, capped, as forward had them
      MultiplyScores(place, key, buffers.query_transposed, size, buffers.scores);
      CapScores(head, place, unit, buffers.scores);
      BiasScores(head, place, begin, s, unit, buffers.scores);
      // 4: out = dropout(pattern)·value, towards the pattern
      MultiplyScores(place, {memory.value[row], memory.value.stride}, buffers.d_out_transposed,
                     size, buffers.products);
      // 3 and 2: pattern = softmax(scores), dropped
      dropout.first_column = static_cast<std::uint32_t>(s);
      const std::int64_t next = s + step < last ? row + step : first_row;
      RowsAhead<4> ahead(
          {memory.key[next], memory.value[next], memory.d_key[next], memory.d_value[next]},
          memory.copied ? RowPrefetch::on : RowPrefetch::off);
      const auto differentiate =
          general ? (dropping ? DifferentiateTile<true, true> : DifferentiateTile<false, true>)
                  : (dropping ? DifferentiateTile<true, false> : DifferentiateTile<false, false>);
      differentiate(place, rows, dropout, keep_scale, cap, ahead, buffers.scores, buffers.products);
      if (gradients.bias != nullptr) {
        AddBiasGradient(head, place, begin, s, buffers.products, gradients.bias);
      }
      if (rounding) {
        RoundTile(place, buffers.scores);
        RoundTile(place, buffers.products);
      }
      // 4, towards values; 1, towards queries and keys
      MixOverKeys<Start::keep>(place, buffers.products, key, columns, {buffers.d_query, columns},
                               nullptr);
      const Rows<float> d_key{memory.d_key[row], memory.d_key.stride};
      const Rows<float> d_value{memory.d_value[row], memory.d_value.stride};
      const bool first = s >= met;
      if (!first && met < s + place.keys) {
        ClearRows(memory, met - start, row + place.keys, memory.copied ? columns : size);
      }
      const Start mixing = first ? Start::zero : Start::keep;
      MixOverQueries(mixing, place, buffers.scores, d_out_rows, columns, d_value);
      MixOverQueries(mixing, place, buffers.products, query_rows, columns, d_key);
    }
    met = std::max(met, last);
    AddRows({buffers.d_query, columns}, queries, size,
            {gradients.query[begin], gradients.query.stride});
  }
}

// All query heads of a group against the stretch, in order.
HWY_INLINE void AttendToStretch(const BackwardGroup& group, const Stretch& stretch) {
  const BackwardMemory memory = PlaceMemory(group, stretch);
  const Head head = group.head(0);
  const HeadGradients gradients = group.gradients(0);
  const std::int64_t size = head.head_size, columns = WholeVectors(size);
  const auto [start, end, first, step] = stretch;
  // Without a window the first head meets every row, in order. With one, rows may be left out.
  std::int64_t met = start;
  if (head.window != unlimited) {
    for (std::int64_t s = first; s < end; s += step) {
      ClearRows(memory, s - start, std::min(s + key_block, end) - start,
                memory.copied ? columns : size);
    }
    met = end;
  }
  for (std::int64_t k = 0; k < group.heads; ++k) {
    AttendToStretch(group.head(k), group.gradients(k), stretch, memory, met);
    met = end;
  }
  for (std::int64_t s = first; memory.copied && s < end; s += step) {
    const std::int64_t count = std::min(key_block, end - s), row = s - start;
    CopyRows({memory.d_key[row], columns}, count, size, {gradients.key[s], gradients.key.stride});
    CopyRows({memory.d_value[row], columns}, count, size,
             {gradients.value[s], gradients.value.stride});
  }
}

void AttendBackward(const BackwardGroup& group, std::int64_t part, std::int64_t parts) {
  const Head head = group.head(0);
  const std::int64_t longest = LongestStretch(WholeVectors(head.head_size), parts);
  for (std::int64_t k = 0; k < group.heads; ++k) {
    const HeadGradients gradients = group.gradients(k);
    for (std::int64_t t = 0; t < head.queries; ++t) {
      std::fill_n(gradients.query[t], head.head_size, 0.0F);
    }
    if (gradients.bias != nullptr) std::fill_n(gradients.bias, group.distances(), 0.0F);
  }
  for (std::int64_t begin = 0; begin < head.memory; begin += longest) {
    AttendToStretch(group, {.begin = begin,
                            .end = std::min(begin + longest, head.memory),
                            .first = begin + part * key_block,
                            .step = parts * key_block});
  }
}

void AttendTile(const Head& head, std::int64_t query_begin, std::int64_t query_end,
                std::int64_t key_begin, std::int64_t key_end, const float* log_sum_exp,
                Rows<float> out) {
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t columns = WholeVectors(head.head_size);
  const std::int64_t queries = query_end - query_begin, keys = key_end - key_begin;
  float* const tile = scratch(Scratch::item, query_block * (key_block + 2 * columns));
  float* const transposed = tile + query_block * key_block;
  float* const copy = transposed + query_block * columns;  // of queries, then of keys
  const bool pattern = log_sum_exp != nullptr;
  const float unit = pattern ? std::numbers::log2e_v<float> : 1.0F;
  const Rows<const float> query =
      Operand(head, {head.query[query_begin], head.query.stride}, queries, copy);
  PackTransposed(query, queries, head.head_size, query_factor(head, unit), transposed);
  const TilePlace place{keys, queries, key_begin - head.visible - query_begin, head.window};
  // every score, masked or not: diagonal such that nothing is left out
  const Rows<const float> key = Operand(head, {head.key[key_begin], head.key.stride}, keys, copy);
  const TilePlace whole{keys, queries, -keys};
  MultiplyScores(whole, key, transposed, head.head_size, tile);
  CapScores(head, whole, unit, tile);
  BiasScores(head, whole, query_begin, key_begin, unit, tile);
  if (pattern) {
    for (std::int64_t j = 0; j < queries; j += lanes) {
      HWY_ALIGN float normalisers[query_block] = {};
      for (std::int64_t lane = 0; lane < std::min(lanes, queries - j); ++lane) {
        normalisers[lane] = log_sum_exp[query_begin + j + lane] * std::numbers::log2e_v<float>;
      }
      const Float normaliser = hn::Load(d, normalisers);
      for (std::int64_t i = 0; i < keys; ++i) {
        float* const at = tile + i * query_block + j;
        const Float power = hn::Sub(hn::Load(d, at), normaliser);
        const auto representable = hn::Gt(power, hn::Set(d, -100.0F));
        hn::Store(hn::IfThenElseZero(representable, Exp2Clamped(d, power)), d, at);
      }
    }
  }
  const float masked = pattern ? 0.0F : -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < queries; ++j) {
    for (std::int64_t i = 0; i < keys; ++i) {
      const std::int64_t distance = j - i - place.diagonal;
      const bool visible = distance >= 0 && distance < place.window;
      out[j][i] = visible ? tile[i * query_block + j] : masked;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(AttendBackward);
HWY_EXPORT(AttendTile);

void attend_backward(const BackwardGroup& group, std::int64_t part, std::int64_t parts) {
  HWY_DYNAMIC_DISPATCH(AttendBackward)(group, part, parts);
}

void attend_tile(const Head& head, std::int64_t query_begin, std::int64_t query_end,
                 std::int64_t key_begin, std::int64_t key_end, const float* log_sum_exp,
                 Rows<float> out) {
  HWY_DYNAMIC_DISPATCH(AttendTile)
  (head, query_begin, query_end, key_begin, key_end, log_sum_exp, out);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
