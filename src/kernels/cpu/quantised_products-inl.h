// Products of a few rows of prepared x with panels of integers, once per instruction set: for
// Highway's targets (quantised_products.cc) and for dot products of bytes that belong to none of
// them: with HEED_NEON_DOT_PRODUCTS defined, AArch64's (quantised_products_neon.cc), and with
// HEED_AVX_VNNI_PRODUCTS, x86-64's beside AVX2 alone (quantised_products_avx_vnni.cc).

#if defined(HEED_KERNELS_CPU_QUANTISED_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_QUANTISED_PRODUCTS_INL_H_
#undef HEED_KERNELS_CPU_QUANTISED_PRODUCTS_INL_H_
#else
#define HEED_KERNELS_CPU_QUANTISED_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/byte_products-inl.h"
#include "kernels/cpu/prepared_formats.h"
#include "kernels/cpu/quantised_panels-inl.h"

#if !defined(HEED_AVX_VNNI_PRODUCTS) || HWY_TARGET == HWY_AVX2
HEED_BEFORE_BYTE_PRODUCTS
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace {  // all of this is compiled twice for AVX2 and for NEON

// A part of a panel that stays in the first-level cache (32 KiB) for all rows: consecutive groups
// of some vectors of outputs. Vectors of 256 bits take one row through the whole width, so that it
// reads every cache line in order, and WebAssembly through a line.
constexpr int kVectors = 2;
constexpr int kVectorsOfOneRow = hn::MaxLanes(Floats()) == 8 || HWY_ARCH_WASM ? 4 : kVectors;
constexpr std::int64_t kSliceGroups = 16;

// Rows at once: sums in integers and in f32 of 24 of 32 registers. Twelve chains of dot products
// cover their latency. With 16 registers (AVX2) these leave room for weights and inputs; sums in
// f32 are in memory.
constexpr int kMostRows = HEED_DOT_PRODUCTS_OF_BYTES && HWY_ARCH_X86 ? 6 : HWY_ARCH_WASM ? 2 : 4;

// Whether the loads of a group are a loop and not a sequence: engines of WebAssembly place all
// loads between two branches before the arithmetic, and then most of them into memory.
template <class Panel>
constexpr bool kLoopsOverLoads = HWY_ARCH_WASM && (Panel::bits == 8 || Panel::bits == 4);

// That part of some panels, which are panel_bytes apart, their scales scale_bytes.
struct Slice {
  const std::uint8_t* integers;
  const std::byte* scales;
  std::int64_t column;  // the first output
  std::int64_t groups;
  std::int64_t groups_left;  // of the panels, from the first one on
  std::int64_t panel_bytes;
  std::int64_t scale_bytes;
  std::int64_t ahead;  // bytes, to prefetch of each panel
};

// For one row, this many panels are read in parallel. With vectors of 512 bits two threads then
// read as fast as a plain loop; one panel at a time reaches 0.8 of that. Those of 256 bits read one
// panel: Zen 3 is slower with four.
constexpr int kStreams = hn::MaxLanes(Floats()) == 16 ? 4 : 1;

// The compiler would add integers in another order, for which it keeps the products of a whole
// group in memory. It must not where that costs more than its order gains: for one row, and for
// sums in pairs, whose four rows take 0.8 of the time. Four rows of int8 take 1.05 to 1.3 times as
// long in this order.
template <class Panel, int rows, int vectors>
HWY_INLINE void KeepOrder(typename Quads<Panel>::Sum (&sum)[rows][vectors]) {
  if constexpr (!HEED_DOT_PRODUCTS_OF_BYTES && (rows == 1 || kSumsInPairs<Panel>)) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        if constexpr (requires { sum[r][v].first; }) {
          KeepInRegister(sum[r][v].first);
        } else {
          KeepInRegister(sum[r][v]);
        }
      }
    }
  }
}

template <class Panel, int rows, int vectors>
HWY_INLINE void AddQuads(const typename Quads<Panel>::Weights (&weights)[vectors],
                         const RowGroup* x, std::int64_t row_groups, std::int64_t quad,
                         typename Quads<Panel>::Sum (&sum)[rows][vectors]) {
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
    std::int32_t four;
    std::memcpy(&four, x[r * row_groups].quantised + 4 * quad, sizeof(four));
    const auto inputs = InputsOf<Panel>(hn::Set(Ints(), four));
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) AddDot(weights[v], inputs, sum[r][v]);
  }
  KeepOrder<Panel>(sum);
}

// Two quads at once, where pairs are widened after them.
template <class Panel, int rows, int vectors>
HWY_INLINE void AddTwoQuads([[maybe_unused]] const Int (&first)[vectors],
                            [[maybe_unused]] const Int (&second)[vectors],
                            [[maybe_unused]] const RowGroup* x,
                            [[maybe_unused]] std::int64_t row_groups,
                            [[maybe_unused]] std::int64_t quad,
                            [[maybe_unused]] Int (&sum)[rows][vectors]) {
#if HEED_PRODUCTS_OF_BYTES
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
    const std::int8_t* const from = x[r * row_groups].quantised + 4 * quad;
    std::int32_t four[2];
    std::memcpy(four, from, sizeof(four));
    const Int inputs = hn::Set(Ints(), four[0]), next_inputs = hn::Set(Ints(), four[1]);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Pair products =
          hn::Add(ProductsOfBytes(first[v], inputs), ProductsOfBytes(second[v], next_inputs));
      sum[r][v] = hn::Add(sum[r][v], SumsOfPairs(products));
      KeepInRegister(sum[r][v]);
    }
  }
#endif
}

// sum += quad `quad` of a group and those after it in its load.
template <class Panel, int quad, int rows, int vectors>
HWY_INLINE void AddLoad(const RowGroup* x, std::int64_t row_groups, const Int (&bytes)[vectors],
                        const std::uint8_t* group, std::int64_t first,
                        typename Quads<Panel>::Sum (&sum)[rows][vectors]) {
  typename Quads<Panel>::Weights weights[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    weights[v] = WeightsOf<Panel>(QuadOf<Panel, quad>(bytes[v], group + v * 4 * IntLanes()));
  }
  if constexpr (kWidensPairs<Panel>) {
    Int second[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      second[v] = QuadOf<Panel, quad + 1>(bytes[v], group + v * 4 * IntLanes());
    }
    AddTwoQuads<Panel, rows>(weights, second, x, row_groups, first + quad, sum);
  } else {
    AddQuads<Panel, rows>(weights, x, row_groups, first + quad, sum);
    if constexpr ((quad + 1) % kQuadsOfLoad<Panel> != 0) {
      AddLoad<Panel, quad + 1>(x, row_groups, bytes, group, first, sum);
    }
  }
}

// sum += quads [quad, end) of a group of rows of x, row_groups apart, · the panelsᵀ, in integers,
// where quad 0 of `integers` is x's quad `first`.
template <class Panel, int quad, int end, int rows, int panels, int vectors>
HWY_INLINE void AddGroup(const RowGroup* x, std::int64_t row_groups, const Slice& slice,
                         const std::uint8_t* integers, std::int64_t ahead, std::int64_t first,
                         typename Quads<Panel>::Sum (&sum)[panels][rows][vectors]) {
  constexpr std::int64_t load = quad / kQuadsOfLoad<Panel>;
  // Loads of the bits apart begin with this one of their own.
  constexpr bool has_apart =
      Panel::bits == 6 ? quad % 4 == 0 : (Panel::bits == 5 || Panel::bits == 3) && quad == 0;
  const std::int64_t lanes = IntLanes();
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
    const std::uint8_t* const group = integers + p * slice.panel_bytes;
    Int bytes[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const std::uint8_t* const from = group + load * kQuadBytes + v * 4 * lanes;
      if (v * 4 * lanes % static_cast<std::int64_t>(kLineBytes) == 0) {
        __builtin_prefetch(from + ahead);
        if constexpr (has_apart) {
          __builtin_prefetch(from + ahead + (kLoads<Panel> + quad / 4 - load) * kQuadBytes);
        }
      }
      bytes[v] = LoadQuads(from);
    }
    AddLoad<Panel, quad>(x, row_groups, bytes, group, first, sum[p]);
  }
  if constexpr (quad + kQuadsOfLoad<Panel> < end) {
    AddGroup<Panel, quad + kQuadsOfLoad<Panel>, end>(x, row_groups, slice, integers, ahead, first,
                                                     sum);
  }
}

// −Σ of the inputs of half `half` of a group, or of all.
template <class Panel, int half>
HWY_INLINE std::int32_t MinusSum(const RowGroup& x) {
  if constexpr (Panel::Scales::halves == 1) return x.minus_sum;
  return half == 0 ? x.minus_first_sum : x.minus_sum - x.minus_first_sum;
}

// Whether sums begin with what the offset of the weights adds, which saves its addition to the
// total. Where several instructions take the place of a dot product this gains nothing.
constexpr bool kBeginsWithCorrection = HEED_DOT_PRODUCTS_OF_BYTES;

// What the offset of the weights adds to their products.
template <class Panel, int half>
HWY_INLINE Int Correction(const RowGroup& x) {
  constexpr unsigned offset = kDropsOffset<Panel> ? 0 : Panel::offset;
  if constexpr (offset == 0) {
    return hn::Zero(Ints());
  } else {
    static_assert(std::has_single_bit(offset));
    return hn::ShiftLeft<std::countr_zero(offset)>(hn::Set(Ints(), MinusSum<Panel, half>(x)));
  }
}

// −Σ times the scale.
template <class Panel, int half>
HWY_INLINE float MinusScaledSum(const RowGroup& x) {
  if constexpr (Panel::Scales::halves == 1) return x.minus_scaled_sum;
  return x.scale * static_cast<float>(MinusSum<Panel, half>(x));
}

// total += the integers of a group, or of its half `half`, times the scales of the weights and of
// x. `scales` are those of its super-block, in which it is group `group`.
template <class Panel, int half, int rows, int panels, int vectors>
HWY_INLINE void AddScaled(const RowGroup* x, std::int64_t row_groups, const Slice& slice,
                          const std::byte* scales, std::int64_t group,
                          const typename Quads<Panel>::Sum (&sum)[panels][rows][vectors],
                          Float (&total)[panels][rows][vectors]) {
  using Scales = typename Panel::Scales;
  const Floats d;
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
    const std::byte* const from = scales + p * slice.scale_bytes;
    Float weight_scales[vectors], minima[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t column = slice.column + v * IntLanes();
      weight_scales[v] = ScalesOf(Scales{}, from, group, half, column);
      if constexpr (kHasMinima<Scales>) minima[v] = MinimaOf(Scales{}, from, group, half, column);
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const RowGroup& x_group = x[r * row_groups];
      const Float x_scale = hn::Set(d, x_group.scale);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        Int dot = Total(sum[p][r][v]);
        if constexpr (!kBeginsWithCorrection) {
          dot = hn::Add(dot, Correction<Panel, half>(x_group));
        }
        total[p][r][v] =
            hn::MulAdd(hn::ConvertTo(d, dot), hn::Mul(weight_scales[v], x_scale), total[p][r][v]);
      }
      if constexpr (kHasMinima<Scales>) {
        const Float minus = hn::Set(d, MinusScaledSum<Panel, half>(x_group));
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          total[p][r][v] = hn::MulAdd(minima[v], minus, total[p][r][v]);
        }
      }
    }
  }
}

// total += half `half` of a group.
template <class Panel, int half, int rows, int panels, int vectors>
HWY_INLINE void AddHalf(const RowGroup* x, std::int64_t row_groups, const Slice& slice,
                        const std::uint8_t* integers, std::int64_t ahead, std::int64_t group,
                        Float (&total)[panels][rows][vectors]) {
  using Scales = typename Panel::Scales;
  typename Quads<Panel>::Sum sum[panels][rows][vectors];
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        if constexpr (kBeginsWithCorrection) {
          sum[p][r][v] = Correction<Panel, half>(x[r * row_groups]);
        } else {
          Clear(sum[p][r][v]);
        }
      }
    }
  }
  constexpr int first = half * kSumQuads<Panel>, end = first + kSumQuads<Panel>;
  if constexpr (kLoopsOverLoads<Panel>) {
    constexpr int load = kQuadsOfLoad<Panel>;
#pragma GCC unroll 1
    for (int quad = first; quad < end; quad += load) {
      AddGroup<Panel, 0, load>(x, row_groups, slice, integers + quad / load * kQuadBytes, ahead,
                               quad, sum);
    }
  } else {
    AddGroup<Panel, first, end>(x, row_groups, slice, integers, ahead, 0, sum);
  }
  AddScaled<Panel, half>(x, row_groups, slice,
                         slice.scales + group / Scales::groups * Scales::bytes,
                         group % Scales::groups, sum, total);
}

// sums (rows, 32) of each panel, sums_stride apart, += rows of x, row_groups apart, · sliceᵀ. Each
// row adds in the same order however many there are.
template <class Panel, int rows, int panels, int vectors>
HWY_NOINLINE void MultiplySlice(const RowGroup* x, std::int64_t row_groups, const Slice& slice,
                                float* sums, std::int64_t sums_stride) {
  const Floats d;
  const std::int64_t lanes = IntLanes();
  Float total[panels][rows][vectors];
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const float* const from = sums + p * sums_stride + r * kWidth;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) total[p][r][v] = hn::LoadU(d, from + v * lanes);
    }
  }
  const std::uint8_t* integers = slice.integers;
  for (std::int64_t group = 0; group < slice.groups; ++group, ++x) {
    // Scales are a stream of their own, which takes turns with a longer one: here the next panel's.
    if (panels == 1 && rows == 1) {
      __builtin_prefetch(slice.scales + group * Panel::scale_bytes + slice.scale_bytes, 0, 2);
    }
    // At their ends, panels are followed by the beginnings of those that are read next.
    const std::int64_t left = (slice.groups_left - group) * Panel::group_bytes;
    const std::int64_t ahead =
        slice.ahead + (left <= slice.ahead ? (panels - 1) * slice.panel_bytes : 0);
    AddHalf<Panel, 0>(x, row_groups, slice, integers, ahead, group, total);
    if constexpr (Panel::Scales::halves == 2) {
      AddHalf<Panel, 1>(x, row_groups, slice, integers, ahead, group, total);
    }
    integers += Panel::group_bytes;
  }
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      float* const to = sums + p * sums_stride + r * kWidth;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) hn::StoreU(total[p][r][v], d, to + v * lanes);
    }
  }
}

// sums (panels, rows, 32) += prepared rows of x · panelsᵀ.
template <class Panel, int panels>
HWY_INLINE void MultiplyBeside(const RowGroup* x, std::int64_t rows, const PanelRun& run,
                               std::int64_t groups, float* sums) {
  const std::int64_t stride = rows * kWidth;
  static_assert(kSliceGroups % Panel::Scales::groups == 0);
  const auto slice_of = [&](std::int64_t group, std::int64_t column) {
    const std::byte* const integers = run.first + group * Panel::group_bytes + 4 * column;
    return Slice{.integers = reinterpret_cast<const std::uint8_t*>(integers),
                 .scales = run.scales + group * Panel::scale_bytes,
                 .column = column,
                 .groups = std::min(kSliceGroups, groups - group),
                 .groups_left = groups - group,
                 .panel_bytes = groups * Panel::group_bytes,
                 .scale_bytes = groups * Panel::scale_bytes,
                 .ahead = run.ahead / panels};
  };
  for (std::int64_t group = 0; group < groups; group += kSliceGroups) {
    if (rows == 1) {
      for (std::int64_t column = 0; column < kWidth; column += kVectorsOfOneRow * IntLanes()) {
        MultiplySlice<Panel, 1, panels, kVectorsOfOneRow>(
            x + group, groups, slice_of(group, column), sums + column, stride);
      }
      continue;
    }
    if constexpr (panels > 1) continue;
    for (std::int64_t column = 0; column < kWidth; column += kVectors * IntLanes()) {
      const Slice slice = slice_of(group, column);
      const RowGroup* row = x + group;
      float* row_sums = sums + column;
      const auto multiply = [&]<int some>(std::integral_constant<int, some>) {
        MultiplySlice<Panel, some, 1, kVectors>(row, groups, slice, row_sums, stride);
        row += some * groups;
        row_sums += some * kWidth;
      };
      std::int64_t left = rows;
      for (; left >= kMostRows; left -= kMostRows)
        multiply(std::integral_constant<int, kMostRows>{});
      if (kMostRows > 4 && left >= 4) {
        multiply(std::integral_constant<int, 4>{});
        left -= 4;
      }
      if (left == 3) multiply(std::integral_constant<int, 3>{});
      if (left == 2) multiply(std::integral_constant<int, 2>{});
      if (left == 1) multiply(std::integral_constant<int, 1>{});
    }
  }
}

// Panels of the run from the p-th on. Not a lambda: Clang does not give one the attributes that are
// pushed above, so that it could not inline functions which have them.
template <class Panel, int panels>
HWY_INLINE void MultiplyFrom(std::int64_t p, const RowGroup* x, std::int64_t rows,
                             const PanelRun& run, std::int64_t groups, float* sums) {
  MultiplyBeside<Panel, panels>(x, rows,
                                {.first = run.first + p * groups * Panel::group_bytes,
                                 .scales = run.scales + p * groups * Panel::scale_bytes,
                                 .count = panels,
                                 .ahead = run.ahead},
                                groups, sums + p * rows * kWidth);
}

template <class Panel>
HWY_NOINLINE void MultiplyPanels(const float* prepared, std::int64_t rows, const PanelRun& run,
                                 const PanelShape& shape, float* sums) {
  const auto* const x = reinterpret_cast<const RowGroup*>(prepared);
  const std::int64_t groups = shape.padded_inputs / kGroup;
  std::int64_t p = 0;
  for (; kStreams > 1 && rows == 1 && p + kStreams <= run.count; p += kStreams) {
    MultiplyFrom<Panel, kStreams>(p, x, rows, run, groups, sums);
  }
  for (; p < run.count; ++p) MultiplyFrom<Panel, 1>(p, x, rows, run, groups, sums);
}

void MultiplyIntegers(WeightFormat format, const float* prepared, std::int64_t rows,
                      const PanelRun& run, const PanelShape& shape, float* sums) {
  with_integer_panel(
      format, [&]<class Panel>(Panel) { MultiplyPanels<Panel>(prepared, rows, run, shape, sums); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HEED_AFTER_BYTE_PRODUCTS
#endif

#endif  // per-target include guard
