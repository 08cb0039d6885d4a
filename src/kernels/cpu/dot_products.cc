// Dot products of some rows of x with the rows of a weight, as in decoding.
#include "kernels/cpu/dot_products.h"

#include <algorithm>

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

// Four outputs, however wide a vector is.
using Outputs = hn::Full128<float>;

// Calls step(load) for the vectors of inputs [0, inputs), `steps` of them between two branches: a
// step of one row is so short that counting them takes a third of its instructions. load(row) is
// the vector at them of a row of x or of the weights.
template <int steps, class Step>
HWY_INLINE void ForVectors(std::int64_t inputs, Step&& step) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  const auto whole = [&](auto n) HEED_INLINE_LAMBDA {
    const std::int64_t at = i + static_cast<std::int64_t>(n) * lanes;
    step([&](const float* from) HEED_INLINE_LAMBDA { return hn::LoadU(d, from + at); });
  };
  for (; i + steps * lanes <= inputs; i += steps * lanes) Unroll<steps>(whole);
  for (; i + lanes <= inputs; i += lanes) Unroll<1>(whole);
  if (i < inputs) {
    step([&](const float* from) HEED_INLINE_LAMBDA {
      return LoadPartial(d, from + i, static_cast<std::size_t>(inputs - i));
    });
  }
}

// Every element is summed in the same order for any number of rows and any parts, so that decoding
// a sequence gives the same result alone and in a batch: over a block of inputs in vectors, whose
// elements SumsOfFour adds, then the blocks, then the bias.

// Outputs [first, last) of `rows` rows, a pass over the weights.
template <int rows>
void FewRows(const DotProducts& part, std::int64_t first, std::int64_t last) {
  const Floats d;
  // Two streams of weights, each of consecutive rows, maximise bandwidth: prefetchers follow them
  // to the end. Streams of alternate rows break off after each row (on Zen 4, 28 of 65 GB/s), and
  // more streams, or prefetches by software, are slower.
  constexpr int streams = 2;
  const std::int64_t half = (last - first) / streams;
  const auto some = [&]<int count>(std::int64_t o,
                                   std::integral_constant<int, count>) HEED_INLINE_LAMBDA {
    constexpr int fours = (count * rows + 3) / 4;
    alignas(16) float elements[fours * 4];  // (count, rows)
    const float* const weight = part.weight + o * part.weight_row;
    for (std::int64_t begin = 0; begin == 0 || begin < part.inputs; begin += inputs_together) {
      Float sum[count][rows];
      Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
        Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA { sum[w][r] = hn::Zero(d); });
      });
      const auto step = [&](auto load) HEED_INLINE_LAMBDA {
        Float weights[count];
        Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
          weights[w] = load(weight + static_cast<std::int64_t>(w) * half * part.weight_row + begin);
          KeepInRegister(weights[w]);
        });
        Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
          Float x_vector = load(part.x + static_cast<std::int64_t>(r) * part.x_row + begin);
          KeepInRegister(x_vector);
          Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
            sum[w][r] = hn::MulAdd(weights[w], x_vector, sum[w][r]);
          });
        });
      };
      constexpr int steps = StepsBetweenBranches(count + rows, count * rows);
      ForVectors<count == streams ? steps : 1>(std::min(inputs_together, part.inputs - begin),
                                               step);
      Unroll<fours>([&](auto four) HEED_INLINE_LAMBDA {
        const auto at = [&](int n) HEED_INLINE_LAMBDA {
          n += 4 * four;
          return n < count * rows ? sum[n / rows][n % rows] : hn::Zero(d);
        };
        auto sums = SumsOfFour(at(0), at(1), at(2), at(3));
        if (begin > 0) sums = hn::Add(hn::Load(Outputs(), elements + 4 * four), sums);
        hn::Store(sums, Outputs(), elements + 4 * four);
      });
    }
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
constexpr std::int64_t kMostRows = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 8
                                   : HWY_ARCH_WASM                            ? 4
                                                                              : 6;

// Calls of the largest number of rows first.
void FewRowsOf(std::int64_t rows, DotProducts part, std::int64_t first, std::int64_t last) {
  const auto run = [&]<int some>(std::integral_constant<int, some>) {
    FewRows<some>(part, first, last);
    rows -= some;
    part.x += some * part.x_row;
    part.out += some * part.outputs;
  };
  while (rows >= kMostRows) run(std::integral_constant<int, kMostRows>{});
  if (rows >= 4) run(std::integral_constant<int, 4>{});
  if (rows == 3) run(std::integral_constant<int, 3>{});
  if (rows == 2) run(std::integral_constant<int, 2>{});
  if (rows == 1) run(std::integral_constant<int, 1>{});
}

// Of `rows` rows and a block of inputs: what `count` weights, one or four, from `weight` on add to
// their outputs from `out` on. `bias` is that of the outputs after the last block, or null.
template <int rows, int count>
HWY_INLINE void Tile(const DotProducts& block, const float* x, const float* weight,
                     const float* bias, bool is_first, float* out) {
  const Floats d;
  const Outputs outputs;
  Float sum[rows][4];
  Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
    Unroll<4>([&](auto w) HEED_INLINE_LAMBDA { sum[r][w] = hn::Zero(d); });
  });
  constexpr int steps = StepsBetweenBranches(rows + count, rows * count);
  ForVectors<steps>(block.inputs, [&](auto load) HEED_INLINE_LAMBDA {
    Float rows_of_x[rows];
    Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
      rows_of_x[r] = load(x + static_cast<std::int64_t>(r) * block.x_row);
      KeepInRegister(rows_of_x[r]);
    });
    Unroll<count>([&](auto w) HEED_INLINE_LAMBDA {
      Float weights = load(weight + static_cast<std::int64_t>(w) * block.weight_row);
      KeepInRegister(weights);
      Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
        sum[r][w] = hn::MulAdd(weights, rows_of_x[r], sum[r][w]);
      });
    });
  });
  Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
    auto sums = SumsOfFour(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
    float* const to = out + static_cast<std::int64_t>(r) * block.outputs;
    if constexpr (count == 4) {
      if (!is_first) sums = hn::Add(hn::LoadU(outputs, to), sums);
      if (bias != nullptr) sums = hn::Add(sums, hn::LoadU(outputs, bias));
      hn::StoreU(sums, outputs, to);
    } else {
      float element = hn::GetLane(sums);
      if (!is_first) element = *to + element;
      if (bias != nullptr) element += *bias;
      *to = element;
    }
  });
}

// Rows of a tile: their sums with four weights, themselves and a weight fill the registers.
constexpr std::int64_t kTileRows = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 6
                                   : HWY_ARCH_WASM                            ? 2
                                                                              : 3;

// What `count` weights from `weight` on add to their outputs of all rows, `block.out`.
template <int count>
void Tiles(std::int64_t rows, const DotProducts& block, bool is_first) {
  const float* x = block.x;
  float* out = block.out;
  const auto run = [&]<int some>(std::integral_constant<int, some>) HEED_INLINE_LAMBDA {
    Tile<some, count>(block, x, block.weight, block.bias, is_first, out);
    x += some * block.x_row;
    out += some * block.outputs;
    rows -= some;
  };
  while (rows >= kTileRows) run(std::integral_constant<int, kTileRows>{});
  if constexpr (kTileRows > 3) {
    if (rows >= 3) run(std::integral_constant<int, 3>{});
  }
  if (rows == 2) run(std::integral_constant<int, 2>{});
  if (rows == 1) run(std::integral_constant<int, 1>{});
}

// Many rows come in blocks of inputs: four weights stay in the first level of the caches for all
// rows, and the rows of x, dense where they come in blocks, in the second.
void ManyRows(std::int64_t rows, const DotProducts& all, std::int64_t first, std::int64_t last) {
  DotProducts block = all;
  for (std::int64_t i = 0; i == 0 || i < all.inputs; i += inputs_together) {
    block.inputs = std::min(inputs_together, all.inputs - i);
    block.x = all.x + (all.x_in_blocks ? i * rows : i);
    block.x_row = all.x_in_blocks ? block.inputs : all.x_row;
    const bool has_bias = all.bias != nullptr && i + block.inputs == all.inputs;
    const auto tiles = [&]<int count>(std::int64_t o, std::integral_constant<int, count>) {
      block.weight = all.weight + o * all.weight_row + i;
      block.bias = has_bias ? all.bias + o : nullptr;
      block.out = all.out + o;
      Tiles<count>(rows, block, i == 0);
    };
    std::int64_t o = first;
    for (; o + 4 <= last; o += 4) tiles(o, std::integral_constant<int, 4>{});
    for (; o < last; ++o) tiles(o, std::integral_constant<int, 1>{});
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
