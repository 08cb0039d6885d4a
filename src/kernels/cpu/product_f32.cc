// Matrix products in f32 on every instruction set, and bf16 products on machines without bf16
// instructions: f32 arithmetic on operands rounded to bf16.
#include <array>
#include <cstring>

#include "kernels/cpu/product_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product_f32.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// A tile of C is kTileRows rows by kTileVectors vectors: 28 accumulators of 32 registers, or 12 of
// 16; the rest hold a row of B and an element of A.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kTileRows = 14;
constexpr int kSteps = 4;  // of `inner` between two branches
#elif HWY_ARCH_WASM
// Engines place the loads of a loop's body before its arithmetic: both operands of a step, 8
// accumulators and a product fit into 15 registers of x86-64, which more rows or steps overflow.
constexpr int kTileRows = 4;
constexpr int kSteps = 1;
#else
constexpr int kTileRows = 6;
constexpr int kSteps = 8;
#endif
constexpr int kTileVectors = 2;
// In WebAssembly a pointer for each row costs more than to pack them.
constexpr bool kRowsInPlace = !HWY_ARCH_WASM;
// A panel of AVX-512 is the longest: a tile cannot prefetch a sixth of one.
constexpr bool kColumnsInTurns = HWY_TARGET <= HWY_AVX3;
constexpr std::int64_t kTilesOfPart = kColumnsInTurns ? 18 : 6;

std::int64_t TileColumns() { return kTileVectors * static_cast<std::int64_t>(hn::Lanes(Floats())); }

// to[c * to_stride + r] = row_r[c] for r, c < 4, in each 128 bits of the vectors; column c is
// stored as one vector.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void StoreTransposed(D d, V row0, V row1, V row2, V row3, float* to,
                                std::int64_t to_stride) {
  const hn::Repartition<double, D> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_stride);
}

// to[c * to_stride + r] = from[r * from_stride + c] for r, c < 4.
HWY_INLINE void Transpose4(const float* from, std::int64_t from_stride, float* to,
                           std::int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  StoreTransposed(d, hn::LoadU(d, from), hn::LoadU(d, from + from_stride),
                  hn::LoadU(d, from + 2 * from_stride), hn::LoadU(d, from + 3 * from_stride), to,
                  to_stride);
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
// The same for four columns of 5 to 8 rows. Eight numbers are stored for each column.
template <std::size_t rows>
HWY_INLINE void TransposeUpTo8(const float* from, std::int64_t from_stride, float* to,
                               std::int64_t to_stride) {
  const hn::FixedTag<float, 8> d;
  const hn::FixedTag<float, 4> half;
  const auto row = [&](auto r) HEED_INLINE_LAMBDA {
    const auto low = hn::LoadU(half, from + static_cast<std::int64_t>(r) * from_stride);
    if constexpr (r + 4 < rows) {
      return hn::Combine(d, hn::LoadU(half, from + static_cast<std::int64_t>(r + 4) * from_stride),
                         low);
    } else {
      return hn::ZeroExtendVector(d, low);
    }
  };
  StoreTransposed(d, row(std::integral_constant<std::size_t, 0>{}),
                  row(std::integral_constant<std::size_t, 1>{}),
                  row(std::integral_constant<std::size_t, 2>{}),
                  row(std::integral_constant<std::size_t, 3>{}), to, to_stride);
}
#endif

// to (inner, to_stride) = the first `count` columns of fromᵀ, for `from` (count, inner).
void PackTransposed(const float* from, std::int64_t from_stride, std::int64_t count,
                    std::int64_t inner, float* to, std::int64_t to_stride) {
  const auto copy = [&](std::int64_t first, std::int64_t end, std::int64_t k) {
    for (; k < inner; ++k) {
      for (std::int64_t r = first; r < end; ++r) {
        to[k * to_stride + r] = from[r * from_stride + k];
      }
    }
  };
  std::int64_t r = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  for (; r + 8 <= count; r += 8) {
    std::int64_t k = 0;
    for (; k + 4 <= inner; k += 4) {
      TransposeUpTo8<8>(from + r * from_stride + k, from_stride, to + k * to_stride + r, to_stride);
    }
    copy(r, r + 8, k);
  }
  if (count == 6) {
    std::int64_t k = 0;  // the next columns overwrite the excess of all but the last
    for (; k + 4 < inner; k += 4) {
      TransposeUpTo8<6>(from + k, from_stride, to + k * to_stride, to_stride);
    }
    return copy(0, 6, k);
  }
#endif
  while (r < count) {
    if (count < 4) return copy(r, count, 0);
    const std::int64_t first = std::min(r, count - 4);  // the last four may be copied twice
    std::int64_t k = 0;
    for (; k + 4 <= inner; k += 4) {
      Transpose4(from + first * from_stride + k, from_stride, to + k * to_stride + first,
                 to_stride);
    }
    copy(first, first + 4, k);
    r = first + 4;
  }
}

// to (inner, to_stride) = the first `count` columns of `from` (inner, ...).
void PackRows(const float* from, std::int64_t from_stride, std::int64_t count, std::int64_t inner,
              float* to, std::int64_t to_stride) {
  for (std::int64_t k = 0; k < inner; ++k) {
    ForEachVector(static_cast<std::size_t>(count),
                  [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
                    store(load(from + k * from_stride), to + k * to_stride);
                  });
  }
}

HWY_INLINE void PrefetchRow(const float* row, std::int64_t count) {
  constexpr std::int64_t line = kLineBytes / sizeof(float);
  for (std::int64_t c = 0; c < count; c += line) __builtin_prefetch(row + c);
}

// As many whole vectors as hold the rows of a tile.
HWY_INLINE void CopyWholeVectors(const float* from, float* to) {
  const Floats d;
  for (std::size_t i = 0; i < kTileRows; i += hn::Lanes(d)) {
    hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  }
}

// Rows of A in panels (inner, kTileRows).
void PackA(const ProductOperand& a, const PanelRange& range, void* panels) {
  float* const to = static_cast<float*>(panels);
  const std::int64_t inner = range.inner;
  if (!a.transposed) {
    for (std::int64_t r = 0; r < range.count; r += kTileRows) {
      const std::int64_t rows = std::min<std::int64_t>(kTileRows, range.count - r);
      PackTransposed(a.data + (range.first + r) * a.stride + range.k, a.stride, rows, inner,
                     to + r * inner, rows);
    }
    return;
  }
  // Several panels at once, to use whole cache lines of A, and several of its rows for each panel,
  // to fill whole lines of the panels: these lie in few sets of the first-level cache, which do not
  // hold a line of each.
  constexpr std::int64_t together = 128 / kTileRows * kTileRows, rows_in_turn = 16;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const std::int64_t whole_vectors = (kTileRows + lanes - 1) / lanes * lanes;
  for (std::int64_t first = 0; first < range.count; first += together) {
    const std::int64_t end = std::min(first + together, range.count);
    const float* from = a.data + range.k * a.stride + range.first;
    for (std::int64_t k = 0; k < inner; k += rows_in_turn) {
      const std::int64_t count = std::min(rows_in_turn, inner - k);
      for (std::int64_t next = k + count; next < std::min(k + 2 * count, inner); ++next) {
        PrefetchRow(from + next * a.stride + first, end - first);
      }
      for (std::int64_t r = first; r < end; r += kTileRows) {
        const std::int64_t rows = std::min<std::int64_t>(kTileRows, end - r);
        const bool is_whole = rows == kTileRows && range.first + r + whole_vectors <= a.stride;
        const float* row = from + k * a.stride + r;
        float* row_of_panel = to + r * inner + k * rows;
        for (std::int64_t i = 0; i < count; ++i, row += a.stride, row_of_panel += rows) {
          if (is_whole && k + i + 1 < inner) {
            CopyWholeVectors(row, row_of_panel);  // the next row overwrites the excess
          } else {
            PackRows(row, 0, rows, 1, row_of_panel, 0);
          }
        }
      }
    }
  }
}

// Packs columns of B as (inner, width), padded with zeros after count. Few columns use half a tile.
HWY_INLINE std::int64_t PanelWidth(std::int64_t count) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  return count <= lanes ? lanes : TileColumns();
}

void PackB(const ProductOperand& b, const PanelRange& range, void* panel) {
  float* const to = static_cast<float*>(panel);
  const std::int64_t width = PanelWidth(range.count);
  if (range.count < width) {
    std::memset(to, 0, sizeof(float) * static_cast<std::size_t>(range.inner * width));
  }
  if (b.transposed) {
    PackTransposed(b.data + range.first * b.stride + range.k, b.stride, range.count, range.inner,
                   to, width);
  } else {
    PackRows(b.data + range.k * b.stride + range.first, b.stride, range.count, range.inner, to,
             width);
  }
}

// Rows [k, k + rows) of whole panels of a B that is not transposed.
template <std::size_t rows>
HWY_INLINE void PackRowsOfPanels(const float* from, std::int64_t stride, const PanelRange& range,
                                 std::int64_t k, float* panel) {
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), width = TileColumns();
  from += k * stride;
  panel += k * width;
  constexpr std::int64_t ahead = 8;  // rows that are prefetched: each is in another page
  Unroll<rows>([&](auto row) HEED_INLINE_LAMBDA {
    const auto next = static_cast<std::int64_t>(row) + ahead;
    if (k + next < range.inner) PrefetchRow(from + next * stride, range.count);
  });
  for (std::int64_t c = 0; c < range.count; c += width, panel += width * range.inner) {
    Unroll<rows * kTileVectors>([&](auto vector) HEED_INLINE_LAMBDA {
      const std::int64_t row = vector / kTileVectors, at = vector % kTileVectors * lanes;
      hn::StoreU(hn::LoadU(d, from + row * stride + c + at), d, panel + row * width + at);
    });
  }
}

// All rows of them, so that each is read once: as many at a time as fill a cache line of a panel.
void PackPanelsOfRows(const ProductOperand& b, const PanelRange& range, void* panels) {
  const float* const from = b.data + range.k * b.stride + range.first;
  float* const to = static_cast<float*>(panels);
  constexpr std::size_t floats = kTileVectors * hn::MaxLanes(Floats());
  constexpr std::size_t rows = std::max<std::size_t>(kLineBytes / sizeof(float) / floats, 1);
  std::int64_t k = 0;
  for (; k + static_cast<std::int64_t>(rows) <= range.inner; k += rows) {
    PackRowsOfPanels<rows>(from, b.stride, range, k, to);
  }
  for (; k < range.inner; ++k) PackRowsOfPanels<1>(from, b.stride, range, k, to);
}

void PackRoundedA(const ProductOperand& a, const PanelRange& range, void* panel) {
  PackA(a, range, panel);
  RoundToBf16(static_cast<float*>(panel), range.count * range.inner);
}

void PackRoundedPanelsOfRows(const ProductOperand& b, const PanelRange& range, void* panels) {
  PackPanelsOfRows(b, range, panels);
  RoundToBf16(static_cast<float*>(panels), range.count * range.inner);
}

void PackRoundedB(const ProductOperand& b, const PanelRange& range, void* panel) {
  PackB(b, range, panel);
  RoundToBf16(static_cast<float*>(panel), PanelWidth(range.count) * range.inner);
}

// A panel of A, packed as (inner, rows).
template <int rows>
class PackedRows {
 public:
  explicit PackedRows(const ProductTile& tile) : at_(static_cast<const float*>(tile.a)) {}

  HWY_INLINE float element(std::int64_t row, std::int64_t k) const { return at_[k * rows + row]; }
  HWY_INLINE void advance(std::int64_t count) { at_ += count * rows; }

 private:
  const float* at_;
};

// Rows of A where they are. Up to six rows have a pointer each, which the compiler must not replace
// by offsets from another one: it would spill them. Of more rows, four share a pointer: x86
// addresses reach one, two and (in a register) three strides from it, so that all rows need few
// registers.
template <int rows>
class RowsInPlace {
 public:
  explicit RowsInPlace(const ProductTile& tile) : stride_(tile.a_stride) {
    Unroll<kPointers>([&](auto i) HEED_INLINE_LAMBDA {
      at_[i] = static_cast<const float*>(tile.a) + static_cast<std::int64_t>(i) * kShare * stride_;
    });
  }

  HWY_INLINE float element(std::int64_t row, std::int64_t k) const {
    return at_[row / kShare][row % kShare * stride_ + k];
  }
  HWY_INLINE void advance(std::int64_t count) {
    Unroll<kPointers>([&](auto i) HEED_INLINE_LAMBDA {
      const float* next = at_[i] + count;
      if constexpr (kShare == 1) KeepPointer(next);
      at_[i] = next;
    });
  }

 private:
  static constexpr int kShare = rows <= 6 ? 1 : 4;  // rows of a pointer
  static constexpr int kPointers = (rows + kShare - 1) / kShare;

  std::int64_t stride_;
  const float* at_[kPointers];
};

template <int rows, int vectors, template <int> class RowsOfA>
HWY_NOINLINE void ComputeTile(const ProductTile& tile) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  Float sum[rows][vectors];
  Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA { sum[r][v] = hn::Zero(d); });
  });
  RowsOfA<rows> a(tile);
  const float* b = static_cast<const float*>(tile.b);
  const auto step = [&](auto k) HEED_INLINE_LAMBDA {
    Float b_vector[vectors];
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      b_vector[v] = hn::LoadU(d, b + (k * vectors + v) * lanes);
    });
    Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
      Float element =
          hn::Set(d, a.element(static_cast<std::int64_t>(r), static_cast<std::int64_t>(k)));
      KeepInRegister(element);
      Unroll<vectors>([&](auto v)
                          HEED_INLINE_LAMBDA { AddProduct(element, b_vector[v], sum[r][v]); });
    });
  };
  const std::byte* next = tile.next.data();
  const std::byte* const next_end = next + tile.next.size();
  const auto steps = [&]() HEED_INLINE_LAMBDA {
    if constexpr (kSteps >= 4) {
      if (next < next_end) {  // one cache line per four steps
        Unroll<kSteps / 4>([&](auto line) HEED_INLINE_LAMBDA {
          __builtin_prefetch(next + line * kLineBytes, 0, 2);
        });
        next += kSteps / 4 * kLineBytes;
      }
    }
    Unroll<kSteps>(step);
    a.advance(kSteps);
    b += kSteps * vectors * lanes;
  };
  std::int64_t left = tile.inner;
  const float* c = tile.c;  // prefetched row by row during the products
  for (int row = 0; row < rows && left >= kSteps; ++row, left -= kSteps, c += tile.c_stride) {
    __builtin_prefetch(c, 1);
    __builtin_prefetch(c + vectors * lanes - 1, 1);
    steps();
  }
  for (; left >= kSteps; left -= kSteps) steps();
  for (; left > 0; --left) {
    step(std::integral_constant<std::size_t, 0>{});
    a.advance(1);
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

using TileFunction = void (*)(const ProductTile&);

template <int vectors, template <int> class RowsOfA, std::size_t... index>
constexpr std::array<TileFunction, sizeof...(index)> TileFunctions(std::index_sequence<index...>) {
  return {&ComputeTile<static_cast<int>(index) + 1, vectors, RowsOfA>...};
}

template <template <int> class RowsOfA>
TileFunction TileFunctionOf(std::int64_t rows, bool is_wide) {
  static constexpr auto narrow = TileFunctions<1, RowsOfA>(std::make_index_sequence<kTileRows>{});
  static constexpr auto wide = TileFunctions<2, RowsOfA>(std::make_index_sequence<kTileRows>{});
  return (is_wide ? wide : narrow)[static_cast<std::size_t>(rows - 1)];
}

// Partial vectors of columns go through a buffer.
void MultiplyTile(const ProductTile& tile) {
  const std::int64_t width = PanelWidth(tile.columns);
  const bool is_wide = width == TileColumns();
  const TileFunction compute = tile.a_stride > 0 ? TileFunctionOf<RowsInPlace>(tile.rows, is_wide)
                                                 : TileFunctionOf<PackedRows>(tile.rows, is_wide);
  if (tile.columns == width) return compute(tile);

  HWY_ALIGN float buffer[kTileRows * kTileVectors * hn::MaxLanes(Floats())] = {};
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(tile.columns);
  ProductTile whole = tile;
  whole.c = buffer;
  whole.c_stride = width;
  if (tile.initial != nullptr) {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      std::memcpy(buffer + r * width, tile.initial + r * tile.initial_stride, bytes);
    }
    whole.initial = buffer;
    whole.initial_stride = width;
  }
  compute(whole);
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    std::memcpy(tile.c + r * tile.c_stride, buffer + r * width, bytes);
  }
}

ProductKernels Kernels() {
  // With AVX-512 a panel of A is 42 KiB, a block of B 480 KiB.
  constexpr std::int64_t depth = 768;
  return {.rows = kTileRows,
          .columns = TileColumns(),
          .row_unit = 1,
          .inner_unit = 1,
          .element = sizeof(float),
          .inner_block = depth,
          .row_block = 2016,
          .column_block = 160,
          .row_block_in_place = rows_in_second_level(depth * sizeof(float), kTileRows),
          .panel_from_memory = 2.4,
          .tiles_of_part = kTilesOfPart,
          .columns_in_turns = kColumnsInTurns,
          .f32_panels = true,
          .rows_in_place = kRowsInPlace,
          .pack_a = &PackA,
          .pack_b = &PackB,
          .pack_panels_of_rows = &PackPanelsOfRows,
          .multiply_tile = &MultiplyTile};
}

ProductKernels RoundedKernels() {
  ProductKernels kernels = Kernels();
  kernels.f32_panels = false;
  kernels.rows_in_place = false;
  kernels.pack_a = &PackRoundedA;
  kernels.pack_b = &PackRoundedB;
  kernels.pack_panels_of_rows = &PackRoundedPanelsOfRows;
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(Kernels);
HWY_EXPORT(RoundedKernels);

ProductKernels f32_product_kernels() { return HWY_DYNAMIC_DISPATCH(Kernels)(); }
ProductKernels rounded_product_kernels() { return HWY_DYNAMIC_DISPATCH(RoundedKernels)(); }

}  // namespace heed::kernels
#endif  // HWY_ONCE
