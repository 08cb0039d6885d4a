// Row statistics and pooled tiles of the pattern: recomputes the scores of a tile, then sums along
// its columns, which are queries.
#include "kernels/attention_summaries.h"
#include "kernels/backends.h"

#include "base/threads.h"
#include "kernels/cpu/scratch.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_summaries.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <limits>
#include <numbers>

#include "kernels/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

using Tokens = hn::RebindToSigned<Floats>;

// A block's queries, a lane each.
struct QueryLanes {
  HWY_ALIGN float normaliser[query_block];  // log_sum_exp in powers of two
  HWY_ALIGN std::int32_t token[query_block];

  void Prepare(const Head& head, std::int64_t begin, std::int64_t queries, const float* log_sum_exp,
               const std::int32_t* tokens) {
    for (std::int64_t j = 0; j < query_block; ++j) {
      const std::int64_t query = begin + std::min(j, queries - 1);
      normaliser[j] =
          log_sum_exp != nullptr ? log_sum_exp[query] * std::numbers::log2e_v<float> : 0.0F;
      token[j] = tokens != nullptr ? tokens[head.memory - head.queries + query] : 0;
    }
  }
};

// The sums of one column vector's rows; weights are p, powers log2 p.
struct ColumnSums {
  Float weight, power, offset, duplicate, induction, largest;
};

// Row statistics of a block, one lane per query.
struct BlockSums {
  HWY_ALIGN float power[query_block] = {};  // Σ p·log2 p
  HWY_ALIGN float distance[query_block] = {};
  HWY_ALIGN float first[query_block] = {};
  HWY_ALIGN float self[query_block] = {};
  HWY_ALIGN float previous[query_block] = {};
  HWY_ALIGN float duplicate[query_block] = {};
  HWY_ALIGN float induction[query_block] = {};
  HWY_ALIGN float largest[query_block] = {};
};

HWY_INLINE void AddTo(float* sums, std::int64_t j, Float value) {
  const Floats d;
  hn::Store(hn::Add(hn::Load(d, sums + j), value), d, sums + j);
}

// Keys key_begin + [0, place.keys) for the queries of column vector j. Key own_diagonal + i is the
// own position of query i. tokens: of the memory, or null.
struct SummedTile {
  TilePlace place;
  std::int64_t key_begin;
  std::int64_t own_diagonal;
  const float* scores;
  const std::int32_t* tokens;
};

template <bool with_tokens, Mask mask>
HWY_INLINE void SumColumn(const SummedTile& tile, std::int64_t j, const QueryLanes& queries,
                          BlockSums& sums) {
  const Floats d;
  const Tokens dt;
  const TilePlace& place = tile.place;
  const std::int64_t key_begin = tile.key_begin, own_diagonal = tile.own_diagonal;
  const std::int32_t* const tokens = tile.tokens;
  const float* const column = tile.scores + j;
  const Float normaliser = hn::Load(d, queries.normaliser + j);
  const auto token = hn::Load(dt, queries.token + j);
  const auto zero = hn::Zero(d);
  ColumnSums sum{zero, zero, zero, zero, zero, hn::Load(d, sums.largest + j)};

  const auto power_at = [&](std::int64_t i) HEED_INLINE_LAMBDA {
    return hn::Sub(hn::Load(d, column + i * query_block), normaliser);
  };
  const auto is_token = [&](std::int64_t s) HEED_INLINE_LAMBDA {
    return hn::RebindMask(d, hn::Eq(token, hn::Set(dt, tokens[s])));
  };
  // Powers below −100 are clamped to a negligible weight; its product with the power is not
  // negligible.
  const auto add = [&](std::int64_t i, Float power, Float weight) HEED_INLINE_LAMBDA {
    sum.weight = hn::Add(sum.weight, weight);
    sum.power = hn::MulAdd(weight, hn::Max(power, hn::Set(d, -100.0F)), sum.power);
    sum.offset = hn::MulAdd(weight, hn::Set(d, static_cast<float>(i)), sum.offset);
  };
  // A key that all lanes see, other than the first, more than a step from each lane's own.
  const auto plain = [&](std::int64_t i) HEED_INLINE_LAMBDA {
    const Float power = power_at(i);
    const Float weight = Exp2Clamped(d, power);
    add(i, power, weight);
    sum.largest = hn::Max(sum.largest, weight);
    if constexpr (with_tokens) {
      sum.duplicate = hn::Add(sum.duplicate, hn::IfThenElseZero(is_token(key_begin + i), weight));
      sum.induction =
          hn::Add(sum.induction, hn::IfThenElseZero(is_token(key_begin + i - 1), weight));
    }
  };
  // Any other is classified lane by lane.
  const auto edge = [&](std::int64_t i) HEED_INLINE_LAMBDA {
    // Distance of the key from each lane's query.
    const Float back = hn::Iota(d, static_cast<float>(j) - static_cast<float>(i + own_diagonal));
    const Float one = hn::Set(d, 1.0F);
    auto visible = hn::Eq(back, back);
    if constexpr (mask == Mask::causal) {
      visible = hn::Ge(back, zero);
      if (place.windowed()) {
        visible = hn::And(visible, hn::Lt(back, hn::Set(d, static_cast<float>(place.window))));
      }
    }
    const Float power = hn::IfThenElseZero(visible, power_at(i));
    const Float weight = hn::IfThenElseZero(visible, Exp2Clamped(d, power));
    add(i, power, weight);
    AddTo(sums.self, j, hn::IfThenElseZero(hn::Eq(back, zero), weight));
    AddTo(sums.previous, j, hn::IfThenElseZero(hn::Eq(back, one), weight));
    const auto other = mask == Mask::full ? hn::Ne(back, zero) : hn::Gt(back, zero);
    if (key_begin + i == 0) AddTo(sums.first, j, weight);
    if (mask == Mask::full || key_begin + i > 0) {
      const auto further = mask == Mask::full ? other : hn::Gt(back, one);
      sum.largest = hn::Max(sum.largest, hn::IfThenElseZero(further, weight));
    }
    if constexpr (with_tokens) {
      const auto same = hn::And(is_token(key_begin + i), other);
      sum.duplicate = hn::Add(sum.duplicate, hn::IfThenElseZero(same, weight));
      if (key_begin + i > 0) {
        auto after = is_token(key_begin + i - 1);
        if constexpr (mask == Mask::full) {
          after = hn::And(after, hn::And(other, hn::Ne(back, hn::Neg(one))));
        }
        sum.induction = hn::Add(sum.induction, hn::IfThenElseZero(after, weight));
      }
    }
  };

  const ColumnLimits limits = LimitsOf<true>(place, j);
  const std::int64_t part = limits.part;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t begin = std::max<std::int64_t>(limits.begin, key_begin == 0 ? 1 : 0);
  const std::int64_t whole = std::clamp<std::int64_t>(limits.whole_begin, begin, part);
  const std::int64_t near = std::clamp<std::int64_t>(j - own_diagonal - 1, whole, part);
  const std::int64_t beyond =
      mask == Mask::full ? std::clamp<std::int64_t>(j + lanes + 1 - own_diagonal, near, part)
                         : part;
  for (std::int64_t i = begin; i < whole; ++i) edge(i);
  for (std::int64_t i = whole; i < near; ++i) plain(i);
  if (key_begin == 0 && limits.begin == 0 && part > 0) edge(0);
  for (std::int64_t i = near; i < beyond; ++i) edge(i);
  for (std::int64_t i = beyond; i < part; ++i) plain(i);

  // Distances are relative to the tile's first key, to avoid cancellation.
  const Float own = hn::Iota(d, static_cast<float>(j - own_diagonal));
  AddTo(sums.distance, j, hn::Sub(hn::Mul(own, sum.weight), sum.offset));
  AddTo(sums.power, j, sum.power);
  AddTo(sums.duplicate, j, sum.duplicate);
  AddTo(sums.induction, j, sum.induction);
  hn::Store(sum.largest, d, sums.largest + j);
}

template <Mask mask>
HWY_INLINE void SumTile(const SummedTile& tile, const QueryLanes& queries, BlockSums& sums) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  for (std::int64_t j = 0; j < tile.place.queries; j += lanes) {
    if (tile.tokens != nullptr) {
      SumColumn<true, mask>(tile, j, queries, sums);
    } else {
      SumColumn<false, mask>(tile, j, queries, sums);
    }
  }
}

// Working memory: a tile of scores, its queries, and as many cells as elements.
struct TileRoom {
  float* tile;
  float* transposed;
  float* sums;
  float* largest;

  explicit TileRoom(const Head& head) {
    const std::int64_t elements = query_block * key_block;
    const std::int64_t packed = query_block * WholeVectors(head.head_size);
    tile = scratch(Scratch::item, static_cast<std::size_t>(3 * elements + packed));
    sums = tile + elements;
    largest = sums + elements;
    transposed = largest + elements;
  }
};

void RowStatistics(const Head& head, Mask mask, std::int64_t begin, std::int64_t end,
                   const float* log_sum_exp, const std::int32_t* tokens,
                   const AttentionRowStatistics<float>& out, std::int64_t first_row) {
  const std::int64_t queries = end - begin;
  const TileRoom room(head);
  constexpr float unit = std::numbers::log2e_v<float>;
  PackTransposed({head.query[begin], head.query.stride}, queries, head.head_size,
                 query_factor(head, unit), room.transposed);
  QueryLanes query_lanes;
  query_lanes.Prepare(head, begin, queries, log_sum_exp, tokens);
  BlockSums sums;
  const std::int64_t last = visible_end(head, end);
  for (std::int64_t s = first_tile(head, begin); s < last; s += key_block) {
    const TilePlace place = PlaceTile(head, begin, queries, s);
    MultiplyScores(place, {head.key[s], head.key.stride}, room.transposed, head.head_size,
                   room.tile);
    CapScores(head, place, unit, room.tile);
    BiasScores(head, place, begin, s, unit, room.tile);
    const SummedTile tile{place, s, s - (head.memory - head.queries) - begin, room.tile, tokens};
    if (mask == Mask::full) {
      SumTile<Mask::full>(tile, query_lanes, sums);
    } else {
      SumTile<Mask::causal>(tile, query_lanes, sums);
    }
  }
  for (std::int64_t j = 0; j < queries; ++j) {
    const std::int64_t row = first_row + begin + j;
    out.entropy.data()[row] = -std::numbers::ln2_v<float> * sums.power[j];
    out.distance.data()[row] = sums.distance[j];
    out.first.data()[row] = sums.first[j];
    out.self.data()[row] = sums.self[j];
    out.previous.data()[row] = sums.previous[j];
    out.duplicate.data()[row] = sums.duplicate[j];
    out.induction.data()[row] = sums.induction[j];
    out.largest.data()[row] = sums.largest[j];
  }
}

// A cell's rows down column vector j: their sum and largest, lane by lane.
template <bool of_pattern>
HWY_INLINE void PoolColumn(const TilePlace& place, std::int64_t pool, std::int64_t j,
                           const float* tile, const QueryLanes& queries, float* sums,
                           float* largest) {
  const Floats d;
  const float* const column = tile + j;
  const Float normaliser = hn::Load(d, queries.normaliser + j);
  const Float lowest =
      of_pattern ? hn::Zero(d) : hn::Set(d, -std::numeric_limits<float>::infinity());
  const ColumnLimits limits = LimitsOf<true>(place, j);
  const auto at = [&](std::int64_t i) HEED_INLINE_LAMBDA {
    const Float score = hn::Load(d, column + i * query_block);
    return of_pattern ? Exp2Clamped(d, hn::Sub(score, normaliser)) : score;
  };
  for (std::int64_t cell = 0; cell * pool < place.keys; ++cell) {
    const std::int64_t end = std::min((cell + 1) * pool, place.keys);
    Float sum = hn::Zero(d);
    Float most = lowest;
    const auto add = [&](std::int64_t i) HEED_INLINE_LAMBDA {
      const Float value = at(i);
      sum = hn::Add(sum, value);
      most = hn::Max(most, value);
    };
    const auto add_some = [&](std::int64_t i) HEED_INLINE_LAMBDA {
      const auto visible = VisibleLanes<true>(place, i, j);
      const Float value = at(i);
      sum = hn::Add(sum, hn::IfThenElseZero(visible, value));
      most = hn::Max(most, hn::IfThenElse(visible, value, lowest));
    };
    std::int64_t i = std::max(cell * pool, limits.begin);
    for (const std::int64_t stop = std::min(end, limits.whole_begin); i < stop; ++i) add_some(i);
    for (const std::int64_t stop = std::min(end, limits.whole); i < stop; ++i) add(i);
    for (const std::int64_t stop = std::min(end, limits.part); i < stop; ++i) add_some(i);
    hn::Store(sum, d, sums + cell * query_block + j);
    hn::Store(most, d, largest + cell * query_block + j);
  }
}

// Queries [begin, end), at most query_block of them, over the tile's keys: their rows of cells.
template <bool of_pattern>
void PoolBlock(const Head& head, std::int64_t begin, std::int64_t end, const AttentionTile& tile,
               const float* log_sum_exp, std::int64_t pool, const PooledAttention<float>& out) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const std::int64_t queries = end - begin;
  const std::int64_t cell_row = (begin - tile.query_begin) / pool;
  const std::int64_t cell_rows = (queries + pool - 1) / pool;
  const TileRoom room(head);
  const float unit = of_pattern ? std::numbers::log2e_v<float> : 1.0F;
  PackTransposed({head.query[begin], head.query.stride}, queries, head.head_size,
                 query_factor(head, unit), room.transposed);
  QueryLanes query_lanes;
  query_lanes.Prepare(head, begin, queries, log_sum_exp, nullptr);

  const std::int64_t seen = std::min(tile.key_end, visible_end(head, end));
  const std::int64_t unseen =
      std::max<std::int64_t>(visible_begin(head, begin) - tile.key_begin, 0) / key_block *
      key_block;
  const std::int64_t first_cell = std::min(unseen / pool, out.sum.extent(1));
  std::int64_t cell_column = first_cell;
  for (std::int64_t s = tile.key_begin + unseen; s < seen; s += key_block) {
    const TilePlace place{std::min(key_block, seen - s), queries, s - head.visible - begin,
                          head.window};
    MultiplyScores(place, {head.key[s], head.key.stride}, room.transposed, head.head_size,
                   room.tile);
    CapScores(head, place, unit, room.tile);
    BiasScores(head, place, begin, s, unit, room.tile);
    for (std::int64_t j = 0; j < queries; j += lanes) {
      PoolColumn<of_pattern>(place, pool, j, room.tile, query_lanes, room.sums, room.largest);
    }
    for (std::int64_t cell = 0; cell * pool < place.keys; ++cell, ++cell_column) {
      for (std::int64_t row = 0; row < cell_rows; ++row) {
        const float* const from = room.sums + cell * query_block;
        const float* const most = room.largest + cell * query_block;
        float sum = 0.0F;
        float top = most[row * pool];
        for (std::int64_t j = row * pool; j < std::min((row + 1) * pool, queries); ++j) {
          sum += from[j];
          top = std::max(top, most[j]);
        }
        out.sum(cell_row + row, cell_column) = sum;
        out.largest(cell_row + row, cell_column) = top;
      }
    }
  }
  const float nothing = of_pattern ? 0.0F : -std::numeric_limits<float>::infinity();
  for (std::int64_t row = 0; row < cell_rows; ++row) {
    for (std::int64_t column = 0; column < out.sum.extent(1); ++column) {
      if (column == first_cell) column = cell_column;
      if (column == out.sum.extent(1)) break;
      out.sum(cell_row + row, column) = 0.0F;
      out.largest(cell_row + row, column) = nothing;
    }
  }
}

void PoolPatternBlock(const Head& head, std::int64_t begin, std::int64_t end,
                      const AttentionTile& tile, const float* log_sum_exp, std::int64_t pool,
                      const PooledAttention<float>& out) {
  PoolBlock<true>(head, begin, end, tile, log_sum_exp, pool, out);
}

void PoolScoresBlock(const Head& head, std::int64_t begin, std::int64_t end,
                     const AttentionTile& tile, const float*, std::int64_t pool,
                     const PooledAttention<float>& out) {
  PoolBlock<false>(head, begin, end, tile, nullptr, pool, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(RowStatistics);
HWY_EXPORT(PoolPatternBlock);
HWY_EXPORT(PoolScoresBlock);

void cpu::attention_row_statistics(const AttentionInput<float>& input,
                                   View<const float> log_sum_exp, View<const std::int32_t> tokens,
                                   const AttentionRowStatistics<float>& statistics) {
  checks::row_statistics(input, log_sum_exp, tokens, statistics);
  const std::int64_t batch = input.query.extent(0), queries = input.query.extent(1);
  const std::int64_t heads = input.query.extent(2), memory = input.key.extent(1);
  const std::int64_t blocks = (queries + query_block - 1) / query_block;
  parallel_items(batch * heads * blocks, [&](std::int64_t item) {
    const std::int64_t b = item / (heads * blocks), h = item / blocks % heads;
    // the last block first: it is the longest
    const std::int64_t begin = (blocks - 1 - item % blocks) * query_block;
    HWY_DYNAMIC_DISPATCH(RowStatistics)
    (head_of(input, b, h), input.mask, begin, std::min(begin + query_block, queries),
     &log_sum_exp(b, h, 0), tokens.present() ? tokens.data() + b * memory : nullptr, statistics,
     (b * heads + h) * queries);
  });
}

void cpu::attention_pooled_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                                const AttentionTile& tile, std::int64_t pool,
                                const PooledAttention<float>& out) {
  checks::pooled_tile(input, tile, pool, out);
  if (log_sum_exp.present()) checks::attention_pattern(input, log_sum_exp);
  const Head head = head_of(input, tile.batch, tile.head);
  const std::int64_t rows = tile.query_end - tile.query_begin;
  const std::int64_t blocks = (rows + query_block - 1) / query_block;
  parallel_items(blocks, [&](std::int64_t item) {
    const std::int64_t begin = tile.query_begin + (blocks - 1 - item) * query_block;
    const std::int64_t end = std::min(begin + query_block, tile.query_end);
    if (log_sum_exp.present()) {
      HWY_DYNAMIC_DISPATCH(PoolPatternBlock)
      (head, begin, end, tile, &log_sum_exp(tile.batch, tile.head, 0), pool, out);
    } else {
      HWY_DYNAMIC_DISPATCH(PoolScoresBlock)(head, begin, end, tile, nullptr, pool, out);
    }
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
