// The matrix product inside attention: C (rows, columns) from A (rows, inner)·B (inner,
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

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Vector registers: 24 accumulators of 32, or 12 of 16, leave room for a row of B and an element
// of A, and cover a latency of 4 cycles at two multiply-adds a cycle.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kAccumulators = 24;
inline constexpr int kMaxVectors = 4;
inline constexpr int kMostStreams = 12;
#elif HWY_ARCH_WASM
// All operands of a step are in registers as well, of which engines leave 15 of x86-64.
inline constexpr int kAccumulators = 8;
inline constexpr int kMaxVectors = 2;
inline constexpr int kMostStreams = 6;
#else
inline constexpr int kAccumulators = 12;
inline constexpr int kMaxVectors = 2;
inline constexpr int kMostStreams = 12;
#endif

// Rows of C computed together when a row is `vectors` wide, each a stream of A.
constexpr int RowsAtOnce(int vectors) {
  return kAccumulators / vectors < kMostStreams ? kAccumulators / vectors : kMostStreams;
}

// Elements of A lie a_row and a_column apart, rows of B and C b_row and c_row.
struct TileProduct {
  const float* a;
  std::int64_t a_row;
  std::int64_t a_column;
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  std::int64_t rows;
  std::int64_t inner;
  const float* row_factors = nullptr;  // (rows), for Start::rescaled
};

enum class Start {
  zero,      // C = A·B
  keep,      // C += A·B
  rescaled,  // C = diagonal(row_factors)·C + A·B
};

// The first `rows` rows and `vectors` vectors of columns of a product.
template <int rows, int vectors, Start start>
HWY_NOINLINE void MicroKernel(const TileProduct& product) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  float* const c = product.c;
  const std::int64_t c_row = product.c_row;
  Float sum[rows][vectors];
  Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      const float* initial = c + r * c_row + v * lanes;
      if constexpr (start == Start::zero) {
        sum[r][v] = hn::Zero(d);
      } else if constexpr (start == Start::keep) {
        sum[r][v] = hn::LoadU(d, initial);
      } else {
        sum[r][v] = hn::Mul(hn::LoadU(d, initial), hn::Set(d, product.row_factors[r]));
      }
    });
  });
  const float* a = product.a;
  const float* b = product.b;
  const std::int64_t a_row = product.a_row, a_column = product.a_column, b_row = product.b_row;
  for (std::int64_t k = product.inner; k > 0; --k) {
    Float b_vector[vectors];
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA { b_vector[v] = hn::LoadU(d, b + v * lanes); });
    Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
      const Float element = hn::Set(d, a[r * a_row]);
      Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
        sum[r][v] = hn::MulAdd(element, b_vector[v], sum[r][v]);
      });
    });
    a += a_column;
    b += b_row;
  }
  Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
    Unroll<vectors>(
        [&](auto v) HEED_INLINE_LAMBDA { hn::StoreU(sum[r][v], d, c + r * c_row + v * lanes); });
  });
}

// MicroKernel of 1, 2, ... rows, one vector wide.
template <Start start, int... less>
HWY_INLINE void RunNarrowKernel(const TileProduct& product, std::int64_t rows,
                                std::integer_sequence<int, less...>) {
  using Kernel = void (*)(const TileProduct&);
  static constexpr Kernel kernels[] = {&MicroKernel<less + 1, 1, start>...};
  kernels[rows - 1](product);
}

// Rows in equal passes: a vector wide, few rows would leave each multiply-add waiting for the one
// before it.
template <Start start>
HWY_INLINE void MultiplyNarrow(TileProduct product) {
  constexpr int most = RowsAtOnce(1);
  for (std::int64_t passes = (product.rows + most - 1) / most; passes > 0; --passes) {
    const std::int64_t rows = (product.rows + passes - 1) / passes;
    RunNarrowKernel<start>(product, rows, std::make_integer_sequence<int, most>());
    product.a += rows * product.a_row;
    product.c += rows * product.c_row;
    product.rows -= rows;
  }
}

// All rows with the largest kernel, then the rest with kernels of four, two and one.
template <int vectors, Start start>
HWY_INLINE void MultiplyColumns(TileProduct product) {
  if constexpr (vectors == 1 && start == Start::zero) return MultiplyNarrow<start>(product);
  const auto run = [&]<int some>(std::integral_constant<int, some>) HEED_INLINE_LAMBDA {
    MicroKernel<some, vectors, start>(product);
    product.a += some * product.a_row;
    product.c += some * product.c_row;
    if constexpr (start == Start::rescaled) product.row_factors += some;
    product.rows -= some;
  };
  constexpr int most = RowsAtOnce(vectors);
  while (product.rows >= most) run(std::integral_constant<int, most>{});
  while (product.rows >= 4) run(std::integral_constant<int, 4>{});
  if (product.rows >= 2) run(std::integral_constant<int, 2>{});
  if (product.rows >= 1) run(std::integral_constant<int, 1>{});
}

// The product with `columns` columns, a whole number of vectors.
template <Start start>
HWY_INLINE void Multiply(TileProduct product, std::int64_t columns) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  for (std::int64_t left = columns / lanes; left > 0;) {
    const std::int64_t vectors = left < kMaxVectors ? left : kMaxVectors;
    if (vectors == 1) {
      MultiplyColumns<1, start>(product);
    } else if (vectors == 2) {
      MultiplyColumns<2, start>(product);
    } else if constexpr (kMaxVectors == 4) {
      vectors == 3 ? MultiplyColumns<3, start>(product) : MultiplyColumns<4, start>(product);
    }
    left -= vectors;
    product.b += vectors * lanes;
    product.c += vectors * lanes;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
