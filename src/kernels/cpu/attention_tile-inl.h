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
// visible to query j if j >= i + diagonal.
struct TilePlace {
  std::int64_t keys;
  std::int64_t queries;
  std::int64_t diagonal;
  bool cut() const { return diagonal + keys - 1 > 0; }  // whether anything is masked
};

HWY_INLINE TilePlace PlaceTile(const Head& head, std::int64_t query_begin, std::int64_t queries,
                               std::int64_t key_begin) {
  const std::int64_t end = visible_end(head, query_begin + queries);
  return {std::min(key_block, end - key_begin), queries, key_begin - head.visible - query_begin};
}

// Rows of a masked tile are processed in groups of 16, each with its own limits.
inline constexpr std::int64_t triangle_group = 16;

// scores (keys, queries) = keys·transposedᵀ; columns masked for all rows of a group are skipped.
HWY_INLINE void MultiplyScores(const TilePlace& place, Rows<const float> keys,
                               const float* transposed, std::int64_t head_size, float* scores) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const std::int64_t width = RoundUp(place.queries, lanes);
  const std::int64_t group = place.cut() ? triangle_group : place.keys;
  for (std::int64_t i = 0; i < place.keys; i += group) {
    const std::int64_t begin = std::max<std::int64_t>(i + place.diagonal, 0) / lanes * lanes;
    Multiply<Start::zero>({.a = keys[i],
                           .a_row = keys.stride,
                           .a_column = 1,
                           .b = transposed + begin,
                           .b_row = query_block,
                           .c = scores + i * query_block + begin,
                           .c_row = query_block,
                           .rows = std::min(group, place.keys - i),
                           .inner = head_size},
                          width - begin);
  }
}

// out (queries, columns) = or += tileᵀ·rows, for a tile (keys, queries) whose masked part is zero.
template <Start start>
HWY_INLINE void MixOverKeys(const TilePlace& place, const float* tile, Rows<const float> rows,
                            std::int64_t columns, Rows<float> out, const float* row_factors) {
  const std::int64_t group = place.cut() ? triangle_group : place.queries;
  for (std::int64_t j = 0; j < place.queries; j += group) {
    const std::int64_t count = std::min(group, place.queries - j);
    const std::int64_t inner = std::clamp<std::int64_t>(j + count - place.diagonal, 0, place.keys);
    Multiply<start>({.a = tile + j,
                     .a_row = 1,
                     .a_column = query_block,
                     .b = rows.data,
                     .b_row = rows.stride,
                     .c = out[j],
                     .c_row = out.stride,
                     .rows = count,
                     .inner = inner,
                     .row_factors = start == Start::rescaled ? row_factors + j : nullptr},
                    columns);
  }
}

// out (keys, columns) = or += tile·rows, for a tile (keys, queries) whose masked part is zero.
HWY_INLINE void MixOverQueries(const TilePlace& place, const float* tile, Rows<const float> rows,
                               std::int64_t columns, Rows<float> out, bool overwrite) {
  const std::int64_t group = place.cut() ? triangle_group : place.keys;
  for (std::int64_t i = 0; i < place.keys; i += group) {
    const std::int64_t begin = std::max<std::int64_t>(i + place.diagonal, 0);
    const TileProduct product{.a = tile + i * query_block + begin,
                              .a_row = query_block,
                              .a_column = 1,
                              .b = rows[begin],
                              .b_row = rows.stride,
                              .c = out[i],
                              .c_row = out.stride,
                              .rows = std::min(group, place.keys - i),
                              .inner = place.queries - begin};
    if (overwrite) {
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

// Rows a column vector starting at column j sees: all lanes of rows before `whole`, some lanes of
// rows before `part`, none after.
struct ColumnLimits {
  std::int64_t whole;
  std::int64_t part;
};

HWY_INLINE ColumnLimits LimitsOf(const TilePlace& place, std::int64_t j) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  return {std::clamp<std::int64_t>(j - place.diagonal + 1, 0, place.keys),
          std::clamp<std::int64_t>(j + lanes - place.diagonal, 0, place.keys)};
}

// Lanes of a vector starting at column j that row i sees.
HWY_INLINE hn::Mask<Floats> VisibleLanes(const TilePlace& place, std::int64_t i, std::int64_t j) {
  const Floats d;
  return hn::Ge(hn::Iota(d, static_cast<float>(j)),
                hn::Set(d, static_cast<float>(i + place.diagonal)));
}

// transposed (head_size, query_block) = factor · rowsᵀ, columns from `count` to the next whole
// vector zero. Four rows are interleaved as whole vectors, whose 128-bit blocks are then squares of
// 4 × 4, the largest that every instruction set can transpose; blocks are separated through memory,
// which is faster than shuffles.
HWY_INLINE void PackTransposed(Rows<const float> rows, std::int64_t count, std::int64_t head_size,
                               float factor, float* transposed) {
  const Floats d;
  const hn::CappedTag<float, 4> d4;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Float factors = hn::Set(d, factor);
  const std::int64_t whole = lanes >= 4 ? head_size / lanes * lanes : 0;
  HWY_ALIGN float blocks[4][hn::MaxLanes(d)];
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const float *row0 = rows[i], *row1 = rows[i + 1], *row2 = rows[i + 2], *row3 = rows[i + 3];
    for (std::int64_t k = 0; k < whole; k += lanes) {
      const Float a = hn::Mul(factors, hn::LoadU(d, row0 + k));
      const Float b = hn::Mul(factors, hn::LoadU(d, row1 + k));
      const Float c = hn::Mul(factors, hn::LoadU(d, row2 + k));
      const Float e = hn::Mul(factors, hn::LoadU(d, row3 + k));
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
      float* to = transposed + k * query_block + i;
      to[0] = factor * row0[k];
      to[1] = factor * row1[k];
      to[2] = factor * row2[k];
      to[3] = factor * row3[k];
    }
  }
  for (; i < count; ++i) {
    for (std::int64_t k = 0; k < head_size; ++k) {
      transposed[k * query_block + i] = factor * rows[i][k];
    }
  }
  for (const std::int64_t end = RoundUp(count, lanes); i < end; ++i) {
    for (std::int64_t k = 0; k < head_size; ++k) transposed[k * query_block + i] = 0.0F;
  }
}

HWY_INLINE std::int64_t WholeVectors(std::int64_t head_size) {
  return RoundUp(head_size, static_cast<std::int64_t>(hn::Lanes(Floats())));
}

// Copies rows to dense rows in `to`, each padded with zeros to a whole vector.
HWY_INLINE void CopyPadded(Rows<const float> rows, std::int64_t count, std::int64_t head_size,
                           float* to) {
  const std::int64_t columns = WholeVectors(head_size);
  for (std::int64_t i = 0; i < count; ++i, to += columns) {
    std::copy_n(rows[i], head_size, to);
    std::fill(to + head_size, to + columns, 0.0F);
  }
}

// CopyPadded, in the precision of the head's products.
HWY_INLINE void CopyOperand(const Head& head, Rows<const float> rows, std::int64_t count,
                            float* to) {
  CopyPadded(rows, count, head.head_size, to);
  if (head.precision == Precision::bf16) RoundToBf16(to, count * WholeVectors(head.head_size));
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
      row_keys[j] = dropout_row_key(head.dropout.key, static_cast<std::uint64_t>(row));
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
