// The one matrix product inside attention: C (rows, columns) from A (rows, inner)·B (inner,
// columns), where elements of A are broadcast, so that A may be transposed or strided at no cost,
// and rows of B and C are dense and whole vectors wide.

#if defined(HEED_KERNELS_CPU_TILE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_TILE_PRODUCT_INL_H_
#undef HEED_KERNELS_CPU_TILE_PRODUCT_INL_H_
#else
#define HEED_KERNELS_CPU_TILE_PRODUCT_INL_H_
#endif

#include <array>
#include <cstdint>
#include <utility>

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Vector registers: 24 accumulators of 32, or 12 of 16, leave room for a row of B and an element
// of A, and cover a latency of 4 cycles at two multiply-adds a cycle.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kAccumulators = 24;
inline constexpr int kMaxVectors = 4;
#else
inline constexpr int kAccumulators = 12;
inline constexpr int kMaxVectors = 2;
#endif

// Rows of C computed together when a row is `vectors` wide; at most 12 streams of A.
constexpr int RowsAtOnce(int vectors) {
  return kAccumulators / vectors < 12 ? kAccumulators / vectors : 12;
}

struct StridedMatrix {
  const float* data;
  std::int64_t row;     // elements from row to row
  std::int64_t column;  // elements from column to column
};

struct DenseRows {
  float* data;
  std::int64_t row;
};

enum class Start {
  zero,      // C = A·B
  keep,      // C += A·B
  rescaled,  // C = diagonal(row_factors)·C + A·B
};

// Unrolls at compile time, so that accumulators are registers and not an array in memory.
template <class Body, std::size_t... index>
HWY_INLINE void UnrollSequence(Body&& body, std::index_sequence<index...>) {
  (body(std::integral_constant<std::size_t, index>{}), ...);
}
template <std::size_t count, class Body>
HWY_INLINE void Unroll(Body&& body) {
  UnrollSequence(body, std::make_index_sequence<count>{});
}
#define HEED_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

template <int rows, int vectors, Start start>
HWY_NOINLINE void MicroKernel(StridedMatrix a, const float* HWY_RESTRICT b, std::int64_t b_row,
                              std::int64_t inner, DenseRows c, const float* row_factors) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  Float sum[rows][vectors];
  Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      const float* initial = c.data + r * c.row + v * lanes;
      if constexpr (start == Start::zero) {
        sum[r][v] = hn::Zero(d);
      } else if constexpr (start == Start::keep) {
        sum[r][v] = hn::LoadU(d, initial);
      } else {
        sum[r][v] = hn::Mul(hn::LoadU(d, initial), hn::Set(d, row_factors[r]));
      }
    });
  });
  const float* a_column = a.data;
  for (std::int64_t k = 0; k < inner; ++k) {
    Float b_vector[vectors];
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA { b_vector[v] = hn::LoadU(d, b + v * lanes); });
    Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
      const Float element = hn::Set(d, a_column[r * a.row]);
      Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
        sum[r][v] = hn::MulAdd(element, b_vector[v], sum[r][v]);
      });
    });
    a_column += a.column;
    b += b_row;
  }
  Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      hn::StoreU(sum[r][v], d, c.data + r * c.row + v * lanes);
    });
  });
}

// `count` rows with the largest kernel, then what is left by fours, twos and ones.
template <int rows, int vectors, Start start>
HWY_INLINE void RowGroup(std::int64_t count, StridedMatrix a, const float* b, std::int64_t b_row,
                         std::int64_t inner, DenseRows c, const float* row_factors) {
  const auto run = [&]<int some>(std::integral_constant<int, some>) HEED_INLINE_LAMBDA {
    MicroKernel<some, vectors, start>(a, b, b_row, inner, c, row_factors);
    a.data += some * a.row;
    c.data += some * c.row;
    if constexpr (start == Start::rescaled) row_factors += some;
    count -= some;
  };
  while (count >= rows) run(std::integral_constant<int, rows>{});
  while (count >= 4) run(std::integral_constant<int, 4>{});
  if (count >= 2) run(std::integral_constant<int, 2>{});
  if (count >= 1) run(std::integral_constant<int, 1>{});
}

template <Start start>
HWY_INLINE void MultiplyRows(std::int64_t count, std::size_t columns, StridedMatrix a,
                             const float* b, std::int64_t b_row, std::int64_t inner, DenseRows c,
                             const float* row_factors) {
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t left = columns / lanes; left > 0;) {
    const std::size_t vectors = left < kMaxVectors ? left : kMaxVectors;
    switch (vectors) {
      case 1: RowGroup<RowsAtOnce(1), 1, start>(count, a, b, b_row, inner, c, row_factors); break;
      case 2: RowGroup<RowsAtOnce(2), 2, start>(count, a, b, b_row, inner, c, row_factors); break;
      default:
        if constexpr (kMaxVectors == 4) {
          if (vectors == 3) {
            RowGroup<RowsAtOnce(3), 3, start>(count, a, b, b_row, inner, c, row_factors);
          } else {
            RowGroup<RowsAtOnce(4), 4, start>(count, a, b, b_row, inner, c, row_factors);
          }
        }
    }
    left -= vectors;
    b += vectors * lanes;
    c.data += vectors * lanes;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
