// Operations of attention's forward and backward on one tile: keys along rows, queries along lanes.
// Softmax then runs along columns, without horizontal sums, and only query blocks are transposed,
// never the memory.

#if defined(HEED_KERNELS_CPU_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_ATTENTION_TILE_INL_H_
#undef HEED_KERNELS_CPU_ATTENTION_TILE_INL_H_
#else
#define HEED_KERNELS_CPU_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/cpu/attention_head.h"
#include "kernels/cpu/tile_product-inl.h"
#include "kernels/dropout_hash.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE std::int64_t RoundUp(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

// The mask of a tile of `keys` rows from key_begin and `queries` columns from query_begin: key i is
// visible to query j if i + diagonal <= j < i + diagonal + window.
struct TilePlace {
  std::int64_t keys;
  std::int64_t queries;
  std::int64_t diagonal;
  std::int64_t window = unlimited;

  bool windowed() const { return window != unlimited; }
  // whether anything is masked
  bool cut() const { return diagonal + keys - 1 > 0 || queries > diagonal + window; }

  // Queries that see some of keys [i, i + count), and keys that some of queries [j, j + count) see.
  struct Range {
    std::int64_t begin;
    std::int64_t size;
  };
  Range queries_of(std::int64_t i, std::int64_t count) const {
    const std::int64_t begin = std::max<std::int64_t>(i + diagonal, 0);
    const std::int64_t end = std::min(i + count - 1 + diagonal + window, queries);
    return {begin, std::max<std::int64_t>(end - begin, 0)};
  }
  Range keys_of(std::int64_t j, std::int64_t count) const {
    const std::int64_t begin = std::max<std::int64_t>(j - diagonal - window + 1, 0);
    const std::int64_t end = std::min(j + count - diagonal, keys);
    return {begin, std::max<std::int64_t>(end - begin, 0)};
  }
};

HWY_INLINE TilePlace PlaceTile(const Head& head, std::int64_t query_begin, std::int64_t queries,
                               std::int64_t key_begin) {
  const std::int64_t end = visible_end(head, query_begin + queries);
  return {std::min(key_block, end - key_begin), queries, key_begin - head.visible - query_begin,
          head.window};
}

// Rows of a masked tile are processed in groups of 16, each with its own limits.
inline constexpr std::int64_t triangle_group = 16;

// body(i, count, begin, width) for groups of rows [i, i + count), with the whole vectors of columns
// [begin, begin + width) that see some of them.
template <class Body>
HWY_INLINE void ForEachGroupOfKeys(const TilePlace& place, Body&& body) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const std::int64_t group = place.cut() ? triangle_group : place.keys;
  for (std::int64_t i = 0; i < place.keys; i += group) {
    const std::int64_t count = std::min(group, place.keys - i);
    const auto [first, size] = place.queries_of(i, count);
    const std::int64_t begin = first / lanes * lanes;
    body(i, count, begin, RoundUp(first + size, lanes) - begin);
  }
}

// scores (keys, queries) = keys·transposedᵀ; columns masked for all rows of a group are skipped.
HWY_INLINE void MultiplyScores(const TilePlace& place, Rows<const float> keys,
                               const float* transposed, std::int64_t head_size, float* scores) {
  ForEachGroupOfKeys(place, [&](std::int64_t i, std::int64_t count, std::int64_t begin,
                                std::int64_t width) HEED_INLINE_LAMBDA {
    Multiply<Start::zero>({.a = keys[i],
                           .a_row = keys.stride,
                           .a_column = 1,
                           .b = transposed + begin,
                           .b_row = query_block,
                           .c = scores + i * query_block + begin,
                           .c_row = query_block,
                           .rows = count,
                           .inner = head_size},
                          width);
  });
}

// Turns products of queries with query_factor into scores in units of 1/unit.
HWY_INLINE void CapScores(const Head& head, const TilePlace& place, float unit, float* scores) {
  if (head.soft_cap == 0.0F) return;
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Float cap = hn::Set(d, head.soft_cap * unit);
  ForEachGroupOfKeys(place, [&](std::int64_t i, std::int64_t count, std::int64_t begin,
                                std::int64_t width) HEED_INLINE_LAMBDA {
    for (std::int64_t row = i; row < i + count; ++row) {
      float* const from = scores + row * query_block + begin;
      for (std::int64_t j = 0; j < width; j += lanes) {
        hn::Store(hn::Mul(cap, Tanh(d, hn::Load(d, from + j))), d, from + j);
      }
    }
  });
}

// Distances of a tile's keys from its queries, far to near: key i and query j have number
// keys − 1 − i + j, so that a row of the tile is a stretch of them.
inline constexpr std::int64_t max_distances = key_block + query_block;

// scores += bias, in units of 1/unit, for queries from query_begin and keys from key_begin on.
HWY_INLINE void BiasScores(const Head& head, const TilePlace& place, std::int64_t query_begin,
                           std::int64_t key_begin, float unit, float* scores) {
  if (!head.bias.present()) return;
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float biases[max_distances];
  const std::int64_t farthest = head.distance(query_begin, key_begin + place.keys - 1);
  for (std::int64_t m = 0; m < place.keys + RoundUp(place.queries, lanes) - 1; ++m) {
    biases[m] = unit * head.bias.at(farthest - m);
  }
  ForEachGroupOfKeys(place, [&](std::int64_t i, std::int64_t count, std::int64_t begin,
                                std::int64_t width) HEED_INLINE_LAMBDA {
    for (std::int64_t row = i; row < i + count; ++row) {
      float* const to = scores + row * query_block + begin;
      const float* const from = biases + place.keys - 1 - row + begin;
      for (std::int64_t j = 0; j < width; j += lanes) {
        hn::Store(hn::Add(hn::Load(d, to + j), hn::LoadU(d, from + j)), d, to + j);
      }
    }
  });
}

// sums[s − t + T − 1] += the sum of a tile's gradients (keys, queries), zero where masked, over
// pairs of query t and key s. Four rows in turn have sums of their own: a row's are read long after
// they were stored one element to the side.
HWY_INLINE void AddBiasGradient(const Head& head, const TilePlace& place, std::int64_t query_begin,
                                std::int64_t key_begin, const float* gradients, float* sums) {
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float shares[4][max_distances] = {};
  for (std::int64_t i = 0; i < place.keys; ++i) {
    const float* const row = gradients + i * query_block;
    float* const to = shares[i % 4] + place.keys - 1 - i;
    for (std::int64_t j = 0; j < place.queries; j += lanes) {
      const auto inside = hn::FirstN(d, static_cast<std::size_t>(place.queries - j));
      const Float gradient = hn::IfThenElseZero(inside, hn::Load(d, row + j));
      hn::StoreU(hn::Add(hn::LoadU(d, to + j), gradient), d, to + j);
    }
  }
  float* const last = sums + (key_begin + place.keys - 1 - query_begin + head.queries - 1);
  for (std::int64_t m = 0; m < place.keys + place.queries - 1; ++m) {
    last[-m] += (shares[0][m] + shares[1][m]) + (shares[2][m] + shares[3][m]);
  }
}

// out (queries, columns) = or += tileᵀ·rows, for a tile (keys, queries) whose masked part is zero.
template <Start start>
HWY_INLINE void MixOverKeys(const TilePlace& place, const float* tile, Rows<const float> rows,
                            std::int64_t columns, Rows<float> out, const float* row_factors) {
  const std::int64_t group = place.cut() ? triangle_group : place.queries;
  for (std::int64_t j = 0; j < place.queries; j += group) {
    const std::int64_t count = std::min(group, place.queries - j);
    const auto [first, size] = place.keys_of(j, count);
    Multiply<start>({.a = tile + j + first * query_block,
                     .a_row = 1,
                     .a_column = query_block,
                     .b = rows[first],
                     .b_row = rows.stride,
                     .c = out[j],
                     .c_row = out.stride,
                     .rows = count,
                     .inner = size,
                     .row_factors = start == Start::rescaled ? row_factors + j : nullptr},
                    columns);
  }
}

// out (keys, columns) = or += tile·rows, for a tile (keys, queries) whose masked part is zero.
HWY_INLINE void MixOverQueries(Start start, const TilePlace& place, const float* tile,
                               Rows<const float> rows, std::int64_t columns, Rows<float> out) {
  const std::int64_t group = place.cut() ? triangle_group : place.keys;
  for (std::int64_t i = 0; i < place.keys; i += group) {
    const std::int64_t count = std::min(group, place.keys - i);
    const auto [begin, size] = place.queries_of(i, count);
    const TileProduct product{.a = tile + i * query_block + begin,
                              .a_row = query_block,
                              .a_column = 1,
                              .b = rows[begin],
                              .b_row = rows.stride,
                              .c = out[i],
                              .c_row = out.stride,
                              .rows = count,
                              .inner = size};
    if (start == Start::zero) {
      Multiply<Start::zero>(product, columns);
    } else {
      Multiply<Start::keep>(product, columns);
    }
  }
}

// body(i, chain) for rows [begin, end), four at a time with chain 0 to 3: operations that depend on
// each other within a chain overlap with the others'.
template <class Body>
HWY_INLINE void ByFours(std::int64_t begin, std::int64_t end, Body&& body) {
  std::int64_t i = begin;
  for (; i + 4 <= end; i += 4) {
    Unroll<4>([&](auto r) HEED_INLINE_LAMBDA { body(i + static_cast<std::int64_t>(r), r); });
  }
  for (; i < end; ++i) body(i, std::integral_constant<std::size_t, 0>{});
}

// Rows a column vector starting at column j sees: all lanes of rows [whole_begin, whole), some
// lanes of rows [begin, whole_begin) and [whole, part), none of others.
struct ColumnLimits {
  std::int64_t begin;
  std::int64_t whole_begin;
  std::int64_t whole;
  std::int64_t part;
};

template <bool windowed>
HWY_INLINE ColumnLimits LimitsOf(const TilePlace& place, std::int64_t j) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const auto inside = [&](std::int64_t row) HEED_INLINE_LAMBDA {
    return std::clamp<std::int64_t>(row, 0, place.keys);
  };
  ColumnLimits limits{0, 0, inside(j - place.diagonal + 1), inside(j + lanes - place.diagonal)};
  if constexpr (!windowed) return limits;
  const std::int64_t first = j - place.diagonal - place.window + 1;  // of the first lane
  limits.begin = inside(first);
  limits.whole_begin = inside(first + lanes - 1);
  // windows shorter than a vector
  if (limits.whole_begin > limits.whole) limits.whole_begin = limits.whole = limits.part;
  return limits;
}

// Lanes of a vector starting at column j that row i sees.
template <bool windowed>
HWY_INLINE hn::Mask<Floats> VisibleLanes(const TilePlace& place, std::int64_t i, std::int64_t j) {
  const Floats d;
  const Float columns = hn::Iota(d, static_cast<float>(j));
  const auto seen = hn::Ge(columns, hn::Set(d, static_cast<float>(i + place.diagonal)));
  if constexpr (!windowed) return seen;
  const std::int64_t end = std::min(i + place.diagonal + place.window, query_block);
  return hn::And(seen, hn::Lt(columns, hn::Set(d, static_cast<float>(end))));
}

// transposed (head_size, query_block) = factor · rowsᵀ, columns from `count` to the next whole
// vector zero. Four rows are interleaved as whole vectors, whose 128-bit blocks are then squares of
// 4 × 4, the largest that every instruction set can transpose; blocks are separated through memory,
// which is faster than shuffles. Rows that are missing from the last four are read from zeros.
HWY_INLINE void PackTransposed(Rows<const float> rows, std::int64_t count, std::int64_t head_size,
                               float factor, float* transposed) {
  const Floats d;
  const hn::CappedTag<float, 4> d4;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Float factors = hn::Set(d, factor);
  const std::int64_t whole = lanes >= 4 ? head_size / lanes * lanes : 0;
  HWY_ALIGN float zeros[hn::MaxLanes(d)] = {};
  HWY_ALIGN float blocks[4][hn::MaxLanes(d)];
  for (std::int64_t i = 0; i < RoundUp(count, lanes); i += 4) {
    const float* row[4];
    std::int64_t step[4];  // from channel to channel
    for (std::int64_t r = 0; r < 4; ++r) {
      row[r] = i + r < count ? rows[i + r] : zeros;
      step[r] = i + r < count ? 1 : 0;
    }
    for (std::int64_t k = 0; k < whole; k += lanes) {
      const auto load = [&](std::int64_t r) HEED_INLINE_LAMBDA {
        return hn::Mul(factors, hn::LoadU(d, row[r] + k * step[r]));
      };
      const Float a = load(0), b = load(1), c = load(2), e = load(3);
      const Float ac_low = hn::InterleaveLower(d, a, c), ac_high = hn::InterleaveUpper(d, a, c);
      const Float be_low = hn::InterleaveLower(d, b, e), be_high = hn::InterleaveUpper(d, b, e);
      hn::Store(hn::InterleaveLower(d, ac_low, be_low), d, blocks[0]);
      hn::Store(hn::InterleaveUpper(d, ac_low, be_low), d, blocks[1]);
      hn::Store(hn::InterleaveLower(d, ac_high, be_high), d, blocks[2]);
      hn::Store(hn::InterleaveUpper(d, ac_high, be_high), d, blocks[3]);
      float* to = transposed + k * query_block + i;
      for (std::int64_t lane = 0; lane < lanes; ++lane, to += query_block) {
        hn::StoreU(hn::LoadU(d4, blocks[lane % 4] + lane / 4 * 4), d4, to);
      }
    }
    for (std::int64_t k = whole; k < head_size; ++k) {
      float* const to = transposed + k * query_block + i;
      for (std::int64_t r = 0; r < 4; ++r) to[r] = factor * row[r][k * step[r]];
    }
  }
}

HWY_INLINE std::int64_t WholeVectors(std::int64_t head_size) {
  return RoundUp(head_size, static_cast<std::int64_t>(hn::Lanes(Floats())));
}

// Copies rows to dense rows in `to`, each padded with zeros to a whole vector and, in bf16,
// rounded.
template <Precision precision>
HWY_INLINE void CopyPadded(Rows<const float> rows, std::int64_t count, std::int64_t head_size,
                           float* to) {
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto put = [&](Float value) HEED_INLINE_LAMBDA {
    hn::StoreU(precision == Precision::bf16 ? RoundedToBf16(value) : value, d, to);
    to += lanes;
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const row = rows[i];
    std::int64_t k = 0;
    for (; k + lanes <= head_size; k += lanes) put(hn::LoadU(d, row + k));
    if (k < head_size) put(LoadPartial(d, row + k, static_cast<std::size_t>(head_size - k)));
  }
}

// CopyPadded, in the precision of the head's products.
HWY_INLINE void CopyOperand(const Head& head, Rows<const float> rows, std::int64_t count,
                            float* to) {
  if (head.precision == Precision::bf16) {
    CopyPadded<Precision::bf16>(rows, count, head.head_size, to);
  } else {
    CopyPadded<Precision::f32>(rows, count, head.head_size, to);
  }
}

// Rounds the columns of a tile that hold queries.
HWY_INLINE void RoundTile(const TilePlace& place, float* tile) {
  const std::int64_t columns =
      RoundUp(place.queries, static_cast<std::int64_t>(hn::Lanes(Floats())));
  for (std::int64_t i = 0; i < place.keys; ++i) RoundToBf16(tile + i * query_block, columns);
}

// Rows as operands of Multiply, in whole vectors and the precision of the head's products: in
// place, or a copy in `buffer`.
HWY_INLINE Rows<const float> Operand(const Head& head, Rows<const float> rows, std::int64_t count,
                                     float* buffer) {
  const std::int64_t columns = WholeVectors(head.head_size);
  if (columns == head.head_size && head.precision == Precision::f32) return rows;
  CopyOperand(head, rows, count, buffer);
  return {buffer, columns};
}

// Rows that the next tile reads, prefetched in small steps between the products of this one: a long
// memory does not stay in a core's own caches.
enum class RowPrefetch { off, on };

template <int ranges>
class RowsAhead {
 public:
  // Dense rows from `begin` on, for each range.
  RowsAhead(const std::array<const float*, ranges>& begin, RowPrefetch prefetch)
      : at_(begin), step_(prefetch == RowPrefetch::on ? kLine : 0) {}

  // For each vector of a tile, in four chains: its share of the lines, for heads of 64.
  template <class Chain>
  HWY_INLINE void Step(Chain) {
    constexpr std::size_t lanes = hn::MaxLanes(Floats()), head_size = 64;
    constexpr std::size_t lines =
        std::max<std::size_t>(ranges * lanes * head_size / (query_block * kLine), 1);
    Unroll<lines>([&](auto line) HEED_INLINE_LAMBDA {
      constexpr std::size_t range = (Chain() * lines + line) % ranges;
      __builtin_prefetch(at_[range], 0, 2);
      at_[range] += step_;
    });
  }

 private:
  static constexpr std::size_t kLine = kLineBytes / sizeof(float);

  std::array<const float*, ranges> at_;
  std::size_t step_;
};

// Dropout inside a tile: lanes hold queries, that is rows of dropout's matrix, and rows hold keys,
// its columns.
struct TileDropout {
  HWY_ALIGN std::uint32_t row_keys[query_block];
  std::uint32_t threshold;
  std::uint32_t first_column;

  void Prepare(const Head& head, std::int64_t query_begin, std::int64_t queries) {
    threshold = dropout_threshold(head.dropout.rate);
    for (std::int64_t j = 0; j < query_block; ++j) {
      const std::int64_t row = head.first_row + query_begin + std::min(j, queries - 1);
      row_keys[j] = dropout_row_key(head.dropout, static_cast<std::uint64_t>(row));
    }
  }

  HWY_INLINE hn::Mask<Floats> Kept(std::int64_t i, std::int64_t j) const {
    const Words dw;
    const std::uint32_t column = first_column + static_cast<std::uint32_t>(i);
    return HWY_NAMESPACE::Kept(Floats(), hn::LoadU(dw, row_keys + j),
                               hn::Set(dw, column * dropout_column_step), hn::Set(dw, threshold));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
