// Dot products of some rows of x with the rows of a weight, as in decoding.
#include "kernels/cpu/dot_products.h"

#include <algorithm>

#include "kernels/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dot_products.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// A block of four elements: the sum of all blocks of a vector.
template <class D, class V>
HWY_INLINE auto SumOfBlocks(D, V vector) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return SumOfBlocks(half, hn::Add(hn::LowerHalf(half, vector), hn::UpperHalf(half, vector)));
  } else {
    return vector;
  }
}

// The sums of the elements of four vectors. In every block of four, elements two apart are added
// first; the blocks' sums are added by halves.
template <class V>
HWY_INLINE auto SumsOfFour(V a, V b, V c, V d) {
  const Floats floats;
  const hn::RepartitionToWide<Floats> pairs;
  const auto of_two = [&](V even, V odd) HEED_INLINE_LAMBDA {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(floats, even, odd),
                                      hn::InterleaveUpper(floats, even, odd)));
  };
  const auto ab = of_two(a, b), cd = of_two(c, d);
  return SumOfBlocks(floats, hn::Add(hn::BitCast(floats, hn::InterleaveLower(pairs, ab, cd)),
                                     hn::BitCast(floats, hn::InterleaveUpper(pairs, ab, cd))));
}

// Vectors of inputs between two branches: a step of one row is so short that counting them takes a
// third of its instructions.
constexpr int kSteps = 8;

// Outputs [first, last) of `rows` rows: dot products of a row of x with a row of the weights. Every
// element is summed in the same order for any `rows` and any parts, so that decoding a sequence
// gives the same result alone and in a batch.
template <int rows>
void FewRows(const DotProducts& part, std::int64_t first, std::int64_t last) {
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), x_row = part.x_row,
                     inputs = part.inputs;
  // Two streams of weights, each of consecutive rows, maximise bandwidth: prefetchers follow them
  // to the end. Streams of alternate rows break off after each row (on Zen 4, 28 of 65 GB/s), and
  // more streams, or prefetches by software, are slower.
  constexpr int streams = 2;
  const std::int64_t half = (last - first) / streams;
  const auto some = [&]<int count>(std::int64_t o,
                                   std::integral_constant<int, count>) HEED_INLINE_LAMBDA {
    Float sum[count][rows];
    const auto saved = [&](auto w, auto r) HEED_INLINE_LAMBDA {
      return part.sums + ((o - first + static_cast<std::int64_t>(w) * half) * rows + r) * lanes;
    };
    Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
      Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
        sum[w][r] = part.is_first ? hn::Zero(d) : hn::LoadU(d, saved(w, r));
      });
    });
    const auto step = [&](auto load) HEED_INLINE_LAMBDA {
      Float weights[count];
      Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
        weights[w] =
            load(part.weight + (o + static_cast<std::int64_t>(w) * half) * part.weight_row);
        KeepInRegister(weights[w]);
      });
      Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
        Float x_vector = load(part.x + static_cast<std::int64_t>(r) * x_row);
        KeepInRegister(x_vector);
        Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
          sum[w][r] = hn::MulAdd(weights[w], x_vector, sum[w][r]);
        });
      });
    };
    constexpr int steps = count == streams ? kSteps : 1;
    std::int64_t i = 0;
    const auto whole_step = [&](auto n) HEED_INLINE_LAMBDA {
      const std::int64_t at = i + static_cast<std::int64_t>(n) * lanes;
      step([&](const float* from) HEED_INLINE_LAMBDA { return hn::LoadU(d, from + at); });
    };
    for (; i + steps * lanes <= inputs; i += steps * lanes) Unroll<steps>(whole_step);
    for (; i + lanes <= inputs; i += lanes) Unroll<1>(whole_step);
    if (i < inputs) {
      step([&](const float* from) HEED_INLINE_LAMBDA {
        return LoadPartial(d, from + i, static_cast<std::size_t>(inputs - i));
      });
    }
    if (!part.is_last) {
      Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
        Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA { hn::StoreU(sum[w][r], d, saved(w, r)); });
      });
      return;
    }
    constexpr int fours = (count * rows + 3) / 4;
    alignas(16) float elements[fours * 4];  // (count, rows)
    Unroll<fours>([&](auto four) HEED_INLINE_LAMBDA {
      const auto at = [&](int n) HEED_INLINE_LAMBDA {
        n += 4 * four;
        return n < count * rows ? sum[n / rows][n % rows] : hn::Zero(d);
      };
      hn::Store(SumsOfFour(at(0), at(1), at(2), at(3)), hn::Full128<float>(), elements + 4 * four);
    });
    Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
      const std::int64_t column = o + static_cast<std::int64_t>(w) * half;
      const float offset = part.bias != nullptr ? part.bias[column] : 0.0F;
      Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
        part.out[static_cast<std::int64_t>(r) * part.outputs + column] =
            elements[w * rows + r] + offset;
      });
    });
  };
  for (std::int64_t o = first; o < first + half; ++o) {
    some(o, std::integral_constant<int, streams>{});
  }
  for (std::int64_t o = first + streams * half; o < last; ++o) {
    some(o, std::integral_constant<int, 1>{});
  }
}

// Rows taken together: their sums, two weights and an element of x fill the registers.
constexpr std::int64_t kMostRows = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 8 : 6;

// Calls of the largest number of rows first.
void FewRowsOf(std::int64_t rows, DotProducts part, std::int64_t first, std::int64_t last) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const auto run = [&]<int some>(std::integral_constant<int, some>) {
    FewRows<some>(part, first, last);
    rows -= some;
    part.x += some * part.x_row;
    part.out += some * part.outputs;
    if (part.sums != nullptr) part.sums += some * lanes * (last - first);
  };
  while (rows >= kMostRows) run(std::integral_constant<int, kMostRows>{});
  if (rows >= 4) run(std::integral_constant<int, 4>{});
  if (rows == 3) run(std::integral_constant<int, 3>{});
  if (rows == 2) run(std::integral_constant<int, 2>{});
  if (rows == 1) run(std::integral_constant<int, 1>{});
}

// Many rows come in blocks: of inputs, so that the rows of x of a pass stay in the first level of
// the caches, and of weights, which stay in the second.
void ManyRows(std::int64_t rows, const DotProducts& all, std::int64_t first, std::int64_t last) {
  DotProducts part = all;
  if (all.inputs > inputs_together) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
    part.sums = scratch(Scratch::item, static_cast<std::size_t>(rows * weights_together * lanes));
  }
  for (; first < last; first += weights_together) {
    for (std::int64_t i = 0; i == 0 || i < all.inputs; i += inputs_together) {
      part.inputs = std::min(inputs_together, all.inputs - i);
      part.x = all.x + (all.x_in_blocks ? i * rows : i);
      part.x_row = all.x_in_blocks ? part.inputs : all.x_row;
      part.weight = all.weight + i;
      part.is_first = i == 0;
      part.is_last = i + part.inputs == all.inputs;
      FewRowsOf(rows, part, first, std::min(first + weights_together, last));
    }
  }
}

// Of weights that stay in the caches for all passes of a few rows: 48 KiB.
constexpr std::int64_t kPieceFloats = 12288;

void DotProductsOfRows(std::int64_t rows, const DotProducts& all, std::int64_t first,
                       std::int64_t last) {
  if (rows > rows_at_memory_speed || all.x_in_blocks) return ManyRows(rows, all, first, last);
  if (rows <= 4 || rows == kMostRows) return FewRowsOf(rows, all, first, last);
  const std::int64_t piece =
      std::max<std::int64_t>(kPieceFloats / std::max<std::int64_t>(all.inputs, 1) / 2 * 2, 4);
  for (; first < last; first += piece) {
    FewRowsOf(rows, all, first, std::min(first + piece, last));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(DotProductsOfRows);

void x_blocks(const float* x, std::int64_t rows, std::int64_t inputs, float* blocks) {
  for (std::int64_t i = 0; i < inputs; i += inputs_together) {
    const std::int64_t count = std::min(inputs_together, inputs - i);
    for (std::int64_t row = 0; row < rows; ++row, blocks += count) {
      std::copy_n(x + row * inputs + i, count, blocks);
    }
  }
}

void dot_products(std::int64_t rows, const DotProducts& all, std::int64_t first,
                  std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(DotProductsOfRows)(rows, all, first, last);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
