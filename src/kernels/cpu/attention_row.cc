// One query of some heads against a memory in f32, bf16 or int8, converted to f32 in registers.
#include "kernels/cpu/attention_row.h"

#include "kernels/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_row.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/cpu/tile_product-inl.h"
#include "kernels/dropout_hash.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Keys and values are processed in chunks, whose scores stay in the first-level cache.
inline constexpr std::int64_t chunk = 128;

// Heads of a group whose dot products and sums are computed together, so that a key or a value is
// loaded once for them.
inline constexpr int kHeadsAtOnce = kMaxVectors == 4 ? 4 : 2;

// Consecutive heads: their scaled queries (heads, size), weights (heads, chunk) and results.
struct RowHeads {
  const float* queries;
  float* weights;
  float* out;
  std::int64_t out_step;
};

// Dot products of length `size` of `heads` queries with four keys, `chunk` apart.
template <int heads, class Element>
HWY_INLINE void DotFour(const float* queries, Rows<const Element> keys, std::int64_t size,
                        float* out) {
  const Floats d;
  Float sum[heads][4];
  Unroll<heads>([&](auto h) HEED_INLINE_LAMBDA {
    for (Float& one : sum[h]) one = hn::Zero(d);
  });
  ForEachVector(
      static_cast<std::size_t>(size), [&](std::size_t, auto load, auto) HEED_INLINE_LAMBDA {
        Float key[4];
        Unroll<4>([&](auto r)
                      HEED_INLINE_LAMBDA { key[r] = load(keys[static_cast<std::int64_t>(r)]); });
        Unroll<heads>([&](auto h) HEED_INLINE_LAMBDA {
          const Float query = load(queries + static_cast<std::int64_t>(h) * size);
          Unroll<4>([&](auto r)
                        HEED_INLINE_LAMBDA { sum[h][r] = hn::MulAdd(query, key[r], sum[h][r]); });
        });
      });
  Unroll<heads>([&](auto h) HEED_INLINE_LAMBDA {
    Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
      out[static_cast<std::int64_t>(h) * chunk + static_cast<std::int64_t>(r)] =
          hn::GetLane(hn::SumOfLanes(d, sum[h][r]));
    });
  });
}

// Prefetches a row that is used some rows later: the rows of a head are too short and too few for
// the hardware prefetcher.
constexpr std::int64_t kRowsAhead = 8;
template <class Element>
HWY_INLINE void FetchRow(const Element* row, std::int64_t size) {
  constexpr std::int64_t line = 64 / sizeof(Element);
  for (std::int64_t k = 0; k < size; k += line) __builtin_prefetch(row + k);
}

// weights = the first `count` keys · queries. With `values`, they are prefetched too: heads that
// share them make the sums too slow to wait for memory as well.
template <int heads, class Element>
HWY_INLINE void ScoreChunk(const RowHeads& rows, Rows<const Element> keys, std::int64_t count,
                           std::int64_t size, const Rows<const Element>* values) {
  float* const weights = rows.weights;
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
      const std::int64_t ahead = i + kRowsAhead + static_cast<std::int64_t>(r);
      FetchRow(keys[ahead], size);
      if (values != nullptr) FetchRow((*values)[ahead], size);
    });
    DotFour<heads, Element>(rows.queries, {keys[i], keys.stride}, size, weights + i);
  }
  for (; i < count; ++i) {  // the same row four times: only one of its products is kept
    float products[(heads - 1) * chunk + 4];
    DotFour<heads, Element>(rows.queries, {keys[i], 0}, size, products);
    for (int h = 0; h < heads; ++h) weights[h * chunk + i] = products[h * chunk];
  }
}

// weights (count) = cap · tanh(weights)
HWY_INLINE void CapChunk(float cap, std::int64_t count, float* weights) {
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += lanes) {
    hn::Store(hn::Mul(hn::Set(d, cap), Tanh(d, hn::Load(d, weights + i))), d, weights + i);
  }
}

// weights (count) += the biases of consecutive distances, in units of log 2.
HWY_INLINE void BiasChunk(const float* biases, std::int64_t count, float* weights) {
  const Floats d;
  const Float unit = hn::Set(d, std::numbers::log2e_v<float>);
  ForEachVector(static_cast<std::size_t>(count),
                [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
                  store(hn::MulAdd(load(biases), unit, load(weights)), weights);
                });
}

// The running state of a head: maximum and sum of 2^(scores − maximum).
struct PartialSoftmax {
  float maximum;
  float sum;
};

// Replaces scores (count) by exp2(scores − maximum), zero up to a whole vector, and updates the
// running state; returns the factor for the sums so far.
HWY_INLINE float SoftmaxChunk(std::int64_t count, float* weights, PartialSoftmax& state) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = count / lanes * lanes;
  Float largest = hn::Set(d, state.maximum);
  for (std::int64_t i = 0; i < whole; i += lanes) {
    largest = hn::Max(largest, hn::Load(d, weights + i));
  }
  if (whole < count) {
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(count - whole));
    largest =
        hn::Max(largest, hn::IfThenElse(inside, hn::Load(d, weights + whole), hn::Set(d, lowest)));
  }
  const float maximum = hn::GetLane(hn::MaxOfLanes(d, largest));
  const bool first = state.maximum == lowest && maximum > lowest;
  const float rescale = first ? 0.0F : std::exp2(state.maximum - maximum);
  Float sum = hn::Zero(d);
  for (std::int64_t i = 0; i < count; i += lanes) {
    const Float score = hn::Load(d, weights + i);
    const auto inside =
        hn::Lt(hn::Iota(d, static_cast<float>(i)), hn::Set(d, static_cast<float>(count)));
    const Float weight =
        hn::IfThenElseZero(inside, Exp2Clamped(d, hn::Sub(score, hn::Set(d, maximum))));
    sum = hn::Add(sum, weight);
    hn::Store(weight, d, weights + i);
  }
  state.sum = state.sum * rescale + hn::GetLane(hn::SumOfLanes(d, sum));
  state.maximum = maximum;
  return rescale;
}

// Whole vectors of columns of out = rescale·out + weights·values, from `column` on, so that each
// row of values is read once.
template <int heads, int vectors, class Element>
HWY_INLINE void MixColumns(const RowHeads& rows, Rows<const Element> values, std::int64_t count,
                           std::int64_t column, const float* rescale) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::size_t chains = 4;
  Float mixed[heads][chains][vectors];
  const auto at = [&](auto h, auto v) HEED_INLINE_LAMBDA {
    return rows.out + static_cast<std::int64_t>(h) * rows.out_step + column +
           static_cast<std::int64_t>(v) * lanes;
  };
  Unroll<heads>([&](auto h) HEED_INLINE_LAMBDA {
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      mixed[h][0][v] = hn::Mul(hn::LoadU(d, at(h, v)), hn::Set(d, rescale[h]));
      for (std::size_t c = 1; c < chains; ++c) mixed[h][c][v] = hn::Zero(d);
    });
  });
  const auto add = [&](std::int64_t row, auto chain) HEED_INLINE_LAMBDA {
    const Element* const from = values[row] + column;
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      const Float value = LoadElements(d, from + static_cast<std::int64_t>(v) * lanes);
      Unroll<heads>([&](auto h) HEED_INLINE_LAMBDA {
        const Float weight = hn::Set(d, rows.weights[static_cast<std::int64_t>(h) * chunk + row]);
        mixed[h][chain][v] = hn::MulAdd(weight, value, mixed[h][chain][v]);
      });
    });
  };
  std::int64_t row = 0;
  for (; row + 4 <= count; row += 4) {
    Unroll<chains>([&](auto c) HEED_INLINE_LAMBDA {
      const std::int64_t this_row = row + static_cast<std::int64_t>(c);
      if constexpr (heads == 1) FetchRow(values[this_row + kRowsAhead] + column, vectors * lanes);
      add(this_row, c);
    });
  }
  for (; row < count; ++row) add(row, std::integral_constant<std::size_t, 0>());
  Unroll<heads>([&](auto h) HEED_INLINE_LAMBDA {
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      const Float sum =
          hn::Add(hn::Add(mixed[h][0][v], mixed[h][1][v]), hn::Add(mixed[h][2][v], mixed[h][3][v]));
      hn::StoreU(sum, d, at(h, v));
    });
  });
}

// out (size) = rescale·out + weights·values
template <int heads, class Element>
HWY_INLINE void MixChunk(const RowHeads& rows, Rows<const Element> values, std::int64_t count,
                         std::int64_t size, const float* rescale) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // times four chains and the heads: half of the registers
  constexpr int vectors = heads < kMaxVectors ? kMaxVectors / heads : 1;
  std::int64_t column = 0;
  for (; column + vectors * lanes <= size; column += vectors * lanes) {
    MixColumns<heads, vectors, Element>(rows, values, count, column, rescale);
  }
  for (; column + lanes <= size; column += lanes) {
    MixColumns<heads, 1, Element>(rows, values, count, column, rescale);
  }
  if (column == size) return;
  const auto left = static_cast<std::size_t>(size - column);
  for (int h = 0; h < heads; ++h) {
    float* const to = rows.out + h * rows.out_step + column;
    Float mixed = hn::Mul(LoadPartial(d, to, left), hn::Set(d, rescale[h]));
    for (std::int64_t row = 0; row < count; ++row) {
      const Float value = LoadElementsPartial(d, values[row] + column, left);
      mixed = hn::MulAdd(hn::Set(d, rows.weights[h * chunk + row]), value, mixed);
    }
    StorePartial(mixed, d, to, left);
  }
}

// body(first, count) for heads [first, first + count), as many at once as possible.
template <class Body>
HWY_INLINE void ForEachHeads(std::int64_t heads, Body&& body) {
  std::int64_t k = 0;
  const auto run = [&]<int some>(std::integral_constant<int, some> count) HEED_INLINE_LAMBDA {
    body(k, count);
    k += some;
  };
  while (heads - k >= kHeadsAtOnce) run(std::integral_constant<int, kHeadsAtOnce>());
  if (kHeadsAtOnce > 2 && heads - k >= 2) run(std::integral_constant<int, 2>());
  if (heads - k >= 1) run(std::integral_constant<int, 1>());
}

// weights (count) *= the scales of rows from `first` on, if rows have scales.
HWY_INLINE void ApplyScales(const MemoryRows& rows, std::int64_t first, std::int64_t count,
                            float* weights) {
  if (rows.scales == nullptr) return;
  const float* const scales = rows.scales + first * rows.scale_stride;
  for (std::int64_t i = 0; i < count; ++i) weights[i] *= scales[i * rows.scale_stride];
}

// Dropped weights of a chunk from `first` on become zero.
HWY_INLINE void DropChunk(const Dropout& dropout, std::int64_t row, std::int64_t first,
                          std::int64_t count, float* weights) {
  const std::uint32_t row_key = dropout_row_key(dropout, static_cast<std::uint64_t>(row));
  const std::uint32_t threshold = dropout_threshold(dropout.rate);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto column = static_cast<std::uint32_t>(first + i);
    if (dropout_bits(row_key, column) < threshold) weights[i] = 0.0F;
  }
}

template <class Element>
void AttendRowsOf(const QueryGroup& group, const HeadMemory& memory, const MemoryRange& range,
                  float* out, std::int64_t out_step) {
  const Head& head = group.head;
  const std::int64_t size = head.head_size, heads = group.heads;
  const Rows<const Element> keys = memory.key.as<Element>();
  const Rows<const Element> values = memory.value.as<Element>();
  float* const weights = scratch(Scratch::item, static_cast<std::size_t>(heads * (chunk + size)));
  float* const scaled = weights + heads * chunk;
  const float factor = query_factor(head, std::numbers::log2e_v<float>);
  const float cap = head.soft_cap * std::numbers::log2e_v<float>;
  // where the bias of memory position 0 would stand; those of the range are in the table
  const std::int64_t first_bias = head.distance(group.query, 0) - head.bias.first;
  for (std::int64_t k = 0; k < heads; ++k) {
    const float* const query = head.query[group.query] + k * group.query_step;
    for (std::int64_t i = 0; i < size; ++i) scaled[k * size + i] = query[i] * factor;
    float* const mine = out + k * out_step;
    std::fill_n(mine, size, 0.0F);
    mine[size] = -std::numeric_limits<float>::infinity();
    mine[size + 1] = 0.0F;
  }
  const auto rows_of = [&](std::int64_t k) HEED_INLINE_LAMBDA {
    return RowHeads{scaled + k * size, weights + k * chunk, out + k * out_step, out_step};
  };
  for (std::int64_t s = range.begin; s < range.end; s += chunk) {
    const std::int64_t count = std::min(chunk, range.end - s);
    const Rows<const Element> chunk_keys{keys[s], keys.stride};
    const Rows<const Element> chunk_values{values[s], values.stride};
    ForEachHeads(
        heads, [&]<int some>(std::int64_t k, std::integral_constant<int, some>) HEED_INLINE_LAMBDA {
          const bool fetching = heads > 1 && k == 0;
          ScoreChunk<some, Element>(rows_of(k), chunk_keys, count, size,
                                    fetching ? &chunk_values : nullptr);
        });
    for (std::int64_t i = 0; i < kRowsAhead; ++i) FetchRow(chunk_values[i], size);
    ForEachHeads(
        heads, [&]<int some>(std::int64_t k, std::integral_constant<int, some>) HEED_INLINE_LAMBDA {
          float rescale[some];
          for (std::int64_t h = k; h < k + some; ++h) {
            float* const mine = weights + h * chunk;
            float* const state = out + h * out_step + size;
            ApplyScales(memory.key, s, count, mine);
            if (cap > 0.0F) CapChunk(cap, count, mine);
            if (head.bias.present()) {
              BiasChunk(head.bias.values + h * group.bias_step + first_bias + s, count, mine);
            }
            PartialSoftmax softmax{state[0], state[1]};
            rescale[h - k] = SoftmaxChunk(count, mine, softmax);
            state[0] = softmax.maximum;
            state[1] = softmax.sum;
            if (head.dropout.rate > 0.0F) {
              DropChunk(head.dropout, head.first_row + group.query + h * group.row_step, s, count,
                        mine);
            }
            ApplyScales(memory.value, s, count, mine);
          }
          MixChunk<some, Element>(rows_of(k), chunk_values, count, size, rescale);
        });
  }
}

void AttendRows(const QueryGroup& group, const HeadMemory& memory, const MemoryRange& range,
                float* out, std::int64_t out_step) {
  switch (memory.key.type) {
    case CacheType::bf16: return AttendRowsOf<std::uint16_t>(group, memory, range, out, out_step);
    case CacheType::int8: return AttendRowsOf<std::int8_t>(group, memory, range, out, out_step);
    case CacheType::f32: return AttendRowsOf<float>(group, memory, range, out, out_step);
  }
}

// Stores the first `count` lanes of `value`.
template <class D, class Element>
HWY_INLINE void StoreSome(D d, hn::Vec<D> value, Element* to, std::size_t count) {
  HWY_ALIGN Element lanes[hn::MaxLanes(d)];
  hn::StoreU(value, d, lanes);
  std::memcpy(to, lanes, count * sizeof(Element));
}

// To nearest, ties to even; a NaN stays one.
HWY_INLINE void QuantiseToBf16(const float* from, std::int64_t size, std::uint16_t* to) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const hn::RebindToSigned<Floats> di;
  const hn::Rebind<std::uint16_t, Floats> dh;
  ForEachVector(
      static_cast<std::size_t>(size), [&](std::size_t i, auto load, auto) HEED_INLINE_LAMBDA {
        const Float x = load(from);
        const auto bits = hn::BitCast(du, x);
        const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
        const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFU)));
        const auto quiet = hn::Or(bits, hn::Set(du, 0x400000U));
        const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
        const auto high = hn::BitCast(di, hn::ShiftRight<16>(chosen));
        const std::size_t left = static_cast<std::size_t>(size) - i;
        StoreSome(dh, hn::DemoteTo(dh, high), to + i, std::min(left, hn::Lanes(d)));
      });
}

HWY_INLINE float QuantiseToInt8(const float* from, std::int64_t size, std::int8_t* to) {
  const Floats d;
  const hn::Rebind<std::int8_t, Floats> db;
  constexpr float most = 127.0F;
  bool finite = true;
  float largest = 0.0F;
  for (std::int64_t k = 0; k < size; ++k) {
    finite = finite && std::isfinite(from[k]);
    largest = std::max(largest, std::abs(from[k]));
  }
  const float scale = largest / most;
  if (!finite || scale < std::numeric_limits<float>::min()) {
    std::fill_n(to, size, std::int8_t{0});
    return finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
  const Float inverse = hn::Set(d, 1.0F / scale);
  ForEachVector(static_cast<std::size_t>(size),
                [&](std::size_t i, auto load, auto) HEED_INLINE_LAMBDA {
                  const auto integers = hn::NearestInt(hn::Mul(load(from), inverse));
                  const std::size_t left = static_cast<std::size_t>(size) - i;
                  StoreSome(db, hn::DemoteTo(db, integers), to + i, std::min(left, hn::Lanes(d)));
                });
  return scale;
}

void QuantiseRow(CacheType type, const float* from, std::int64_t size, std::byte* to,
                 float* scale) {
  if (type == CacheType::bf16) {
    QuantiseToBf16(from, size, reinterpret_cast<std::uint16_t*>(to));
  } else {
    *scale = QuantiseToInt8(from, size, reinterpret_cast<std::int8_t*>(to));
  }
}

template <class Element>
HWY_INLINE void RestoreRowOf(const std::byte* from, float scale, std::int64_t size, float* to) {
  const auto* const elements = reinterpret_cast<const Element*>(from);
  const Float factor = hn::Set(Floats(), scale);
  ForEachVector(static_cast<std::size_t>(size),
                [&](std::size_t, auto load, auto store)
                    HEED_INLINE_LAMBDA { store(hn::Mul(load(elements), factor), to); });
}

void RestoreRow(CacheType type, const std::byte* from, const float* scale, std::int64_t size,
                float* to) {
  if (type == CacheType::bf16) {
    RestoreRowOf<std::uint16_t>(from, 1.0F, size, to);
  } else {
    RestoreRowOf<std::int8_t>(from, *scale, size, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(AttendRows);
HWY_EXPORT(QuantiseRow);
HWY_EXPORT(RestoreRow);

void attend_rows(const QueryGroup& group, const HeadMemory& memory, const MemoryRange& range,
                 float* out, std::int64_t out_step) {
  HWY_DYNAMIC_DISPATCH(AttendRows)(group, memory, range, out, out_step);
}

void quantise_row(CacheType type, const float* from, std::int64_t size, std::byte* to,
                  float* scale) {
  HWY_DYNAMIC_DISPATCH(QuantiseRow)(type, from, size, to, scale);
}

void restore_row(CacheType type, const std::byte* from, const float* scale, std::int64_t size,
                 float* to) {
  HWY_DYNAMIC_DISPATCH(RestoreRow)(type, from, scale, size, to);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
