// What a matrix product is made of, once per instruction set: panels of A and B copied into the
// order in which they are read, and the multiply-adds of one tile of C. (Goto, van de Geijn 2008.)

#if defined(HEED_KERNELS_CPU_PRODUCT_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_PRODUCT_KERNEL_INL_H_
#undef HEED_KERNELS_CPU_PRODUCT_KERNEL_INL_H_
#else
#define HEED_KERNELS_CPU_PRODUCT_KERNEL_INL_H_
#endif

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/product.h"
#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// A tile of C is kTileRows rows by kTileVectors vectors: 28 accumulators of 32 registers, or 12 of
// 16; the rest hold a row of B and an element of A.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kTileRows = 14;
#else
inline constexpr int kTileRows = 6;
#endif
inline constexpr int kTileVectors = 2;

inline std::int64_t TileColumns() {
  return kTileVectors * static_cast<std::int64_t>(hn::Lanes(Floats()));
}

// to[c * to_stride + r] = from[r * from_stride + c] for r, c < 4.
HWY_INLINE void Transpose4(const float* from, std::int64_t from_stride, float* to,
                           std::int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto row0 = hn::LoadU(d, from), row1 = hn::LoadU(d, from + from_stride);
  const auto row2 = hn::LoadU(d, from + 2 * from_stride);
  const auto row3 = hn::LoadU(d, from + 3 * from_stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_stride);
}

// to (inner, to_stride) = the first `count` columns of fromᵀ, for `from` (count, inner).
HWY_INLINE void PackTransposed(const float* from, std::int64_t from_stride, std::int64_t count,
                               std::int64_t inner, float* to, std::int64_t to_stride) {
  std::int64_t r = 0;
  while (r < count) {
    if (count < 4) {
      for (std::int64_t k = 0; k < inner; ++k) to[k * to_stride + r] = from[r * from_stride + k];
      ++r;
      continue;
    }
    const std::int64_t first = std::min(r, count - 4);  // the last four may be copied twice
    const float* rows = from + first * from_stride;
    std::int64_t k = 0;
    for (; k + 4 <= inner; k += 4) {
      Transpose4(rows + k, from_stride, to + k * to_stride + first, to_stride);
    }
    for (; k < inner; ++k) {
      for (int i = 0; i < 4; ++i) to[k * to_stride + first + i] = rows[i * from_stride + k];
    }
    r = first + 4;
  }
}

// to (inner, to_stride) = the first `count` columns of `from` (inner, ...).
HWY_INLINE void PackRows(const float* from, std::int64_t from_stride, std::int64_t count,
                         std::int64_t inner, float* to, std::int64_t to_stride) {
  for (std::int64_t k = 0; k < inner; ++k) {
    ForEachVector(static_cast<std::size_t>(count), [&](std::size_t, auto load, auto store)
                      HEED_INLINE_LAMBDA {
                        store(load(from + k * from_stride), to + k * to_stride);
                      });
  }
}

// Rows [row, row + count) and `inner` from k on of A, as (inner, count).
HWY_INLINE void PackA(const ProductOperand& a, std::int64_t row, std::int64_t count, std::int64_t k,
                      std::int64_t inner, float* to) {
  if (a.transposed) {
    PackRows(a.data + k * a.stride + row, a.stride, count, inner, to, count);
  } else {
    PackTransposed(a.data + row * a.stride + k, a.stride, count, inner, to, count);
  }
}

// Columns [column, column + count) and `inner` from k on of B, as (inner, width), zero behind count.
HWY_INLINE void PackB(const ProductOperand& b, std::int64_t column, std::int64_t count,
                      std::int64_t width, std::int64_t k, std::int64_t inner, float* to) {
  if (count < width) std::memset(to, 0, sizeof(float) * static_cast<std::size_t>(inner * width));
  if (b.transposed) {
    PackTransposed(b.data + column * b.stride + k, b.stride, count, inner, to, width);
  } else {
    PackRows(b.data + k * b.stride + column, b.stride, count, inner, to, width);
  }
}

// One tile: C (rows, vectors) = initial + A·B from packed panels.
struct Tile {
  const float* a;  // (inner, rows)
  const float* b;  // (inner, vectors)
  float* c;
  std::int64_t c_stride;
  const float* initial;
  std::int64_t initial_stride;
  std::int64_t inner;
};

template <int rows, int vectors>
HWY_NOINLINE void ComputeTile(const Tile& tile) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  Float sum[rows][vectors];
  Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA { sum[r][v] = hn::Zero(d); });
  });
  const float* a = tile.a;
  const float* b = tile.b;
  const auto step = [&](auto k) HEED_INLINE_LAMBDA {
    Float b_vector[vectors];
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      b_vector[v] = hn::LoadU(d, b + (k * vectors + v) * lanes);
    });
    Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
      const Float element = hn::Set(d, a[k * rows + r]);
      Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
        sum[r][v] = hn::MulAdd(element, b_vector[v], sum[r][v]);
      });
    });
  };
  const auto four_steps = [&]() HEED_INLINE_LAMBDA {
    Unroll<4>(step);
    a += 4 * rows;
    b += 4 * vectors * lanes;
  };
  std::int64_t left = tile.inner;
  const float* c = tile.c;  // fetched, row by row, while the products are summed
  for (int row = 0; row < rows && left >= 4; ++row, left -= 4, c += tile.c_stride) {
    __builtin_prefetch(c, 1);
    __builtin_prefetch(c + vectors * lanes - 1, 1);
    four_steps();
  }
  for (; left >= 4; left -= 4) four_steps();
  for (; left > 0; --left) {
    step(std::integral_constant<std::size_t, 0>{});
    a += rows;
    b += vectors * lanes;
  }
  const auto store = [&](auto initial) HEED_INLINE_LAMBDA {
    Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
      const std::int64_t row = static_cast<std::int64_t>(r);
      Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
        hn::StoreU(initial(sum[r][v], row, v * lanes), d, tile.c + row * tile.c_stride + v * lanes);
      });
    });
  };
  if (tile.initial == nullptr) {
    store([](Float value, std::int64_t, std::size_t) HEED_INLINE_LAMBDA { return value; });
  } else {
    store([&](Float value, std::int64_t row, std::size_t column) HEED_INLINE_LAMBDA {
      return hn::Add(value, hn::LoadU(d, tile.initial + row * tile.initial_stride + column));
    });
  }
}

using TileFunction = void (*)(const Tile&);

template <int vectors, std::size_t... index>
constexpr std::array<TileFunction, sizeof...(index)> TileFunctions(std::index_sequence<index...>) {
  return {&ComputeTile<static_cast<int>(index) + 1, vectors>...};
}

// The kernel for a tile of 1 to kTileRows rows and 1 to kTileVectors vectors.
HWY_INLINE TileFunction TileFor(std::int64_t rows, int vectors) {
  static constexpr auto narrow = TileFunctions<1>(std::make_index_sequence<kTileRows>{});
  static constexpr auto wide = TileFunctions<2>(std::make_index_sequence<kTileRows>{});
  return (vectors == 1 ? narrow : wide)[static_cast<std::size_t>(rows - 1)];
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
