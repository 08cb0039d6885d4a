// One query of one head against a memory in f32, bf16 or int8, converted to f32 in registers.
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

// Four dot products of length `size` with one vector.
template <class Element>
HWY_INLINE void DotFour(const float* x, Rows<const Element> rows, std::int64_t size, float* out) {
  const Floats d;
  Float sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  ForEachVector(static_cast<std::size_t>(size),
                [&](std::size_t, auto load, auto) HEED_INLINE_LAMBDA {
                  const Float shared = load(x);
                  Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
                    sum[r] = hn::MulAdd(shared, load(rows[static_cast<std::int64_t>(r)]), sum[r]);
                  });
                });
  Unroll<4>([&](auto r) HEED_INLINE_LAMBDA { out[r] = hn::GetLane(hn::SumOfLanes(d, sum[r])); });
}

// Prefetches a row that is used some rows later: the rows of a head are too short and too few for
// the hardware prefetcher.
constexpr std::int64_t kRowsAhead = 8;
template <class Element>
HWY_INLINE void FetchRow(const Element* row, std::int64_t size) {
  constexpr std::int64_t line = 64 / sizeof(Element);
  for (std::int64_t k = 0; k < size; k += line) __builtin_prefetch(row + k);
}

// weights (chunk) = the first `count` keys · x, then −∞.
template <class Element>
HWY_INLINE void ScoreChunk(const float* x, Rows<const Element> keys, std::int64_t count,
                           std::int64_t size, float* weights) {
  std::fill_n(weights, chunk, -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
      FetchRow(keys[i + kRowsAhead + static_cast<std::int64_t>(r)], size);
    });
    DotFour<Element>(x, {keys[i], keys.stride}, size, weights + i);
  }
  for (; i < count; ++i) {  // the same row four times: only one of its products is kept
    float products[4];
    DotFour<Element>(x, {keys[i], 0}, size, products);
    weights[i] = products[0];
  }
}

// Replaces scores by exp2(scores − maximum) and updates the running state; returns the factor for
// the sums so far.
HWY_INLINE float SoftmaxChunk(std::int64_t count, float* weights, PartialSoftmax& state) {
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Float largest = hn::Set(d, state.maximum);
  for (std::int64_t i = 0; i < chunk; i += lanes) {
    largest = hn::Max(largest, hn::Load(d, weights + i));
  }
  const float maximum = hn::GetLane(hn::MaxOfLanes(d, largest));
  const float rescale = std::exp2(state.maximum - maximum);
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
template <int vectors, class Element>
HWY_INLINE void MixColumns(const float* weights, Rows<const Element> values, std::int64_t count,
                           std::int64_t column, float rescale, float* out) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::size_t chains = 4;
  Float mixed[chains][vectors];
  Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
    const float* const from = out + column + static_cast<std::int64_t>(v) * lanes;
    mixed[0][v] = hn::Mul(hn::LoadU(d, from), hn::Set(d, rescale));
    for (std::size_t c = 1; c < chains; ++c) mixed[c][v] = hn::Zero(d);
  });
  const auto add = [&](std::int64_t row, auto chain) HEED_INLINE_LAMBDA {
    const Float weight = hn::Set(d, weights[row]);
    const Element* const from = values[row] + column;
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      const Float value = LoadElements(d, from + static_cast<std::int64_t>(v) * lanes);
      mixed[chain][v] = hn::MulAdd(weight, value, mixed[chain][v]);
    });
  };
  std::int64_t row = 0;
  for (; row + 4 <= count; row += 4) {
    Unroll<chains>([&](auto c) HEED_INLINE_LAMBDA {
      const std::int64_t at = row + static_cast<std::int64_t>(c);
      FetchRow(values[at + kRowsAhead] + column, vectors * lanes);
      add(at, c);
    });
  }
  for (; row < count; ++row) add(row, std::integral_constant<std::size_t, 0>());
  Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
    const Float sum = hn::Add(hn::Add(mixed[0][v], mixed[1][v]), hn::Add(mixed[2][v], mixed[3][v]));
    hn::StoreU(sum, d, out + column + static_cast<std::int64_t>(v) * lanes);
  });
}

// out (size) = rescale·out + weights·values
template <class Element>
HWY_INLINE void MixChunk(const float* weights, Rows<const Element> values, std::int64_t count,
                         std::int64_t size, float rescale, float* out) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int vectors = kMaxVectors;  // times four chains are half of the registers
  std::int64_t column = 0;
  for (; column + vectors * lanes <= size; column += vectors * lanes) {
    MixColumns<vectors, Element>(weights, values, count, column, rescale, out);
  }
  for (; column + lanes <= size; column += lanes) {
    MixColumns<1, Element>(weights, values, count, column, rescale, out);
  }
  if (column == size) return;
  const auto left = static_cast<std::size_t>(size - column);
  Float mixed = hn::Mul(LoadPartial(d, out + column, left), hn::Set(d, rescale));
  for (std::int64_t row = 0; row < count; ++row) {
    const Float value = LoadElementsPartial(d, values[row] + column, left);
    mixed = hn::MulAdd(hn::Set(d, weights[row]), value, mixed);
  }
  StorePartial(mixed, d, out + column, left);
}

// weights (count) *= the scales of rows from `first` on, if rows have scales.
HWY_INLINE void ApplyScales(const MemoryRows& rows, std::int64_t first, std::int64_t count,
                            float* weights) {
  if (rows.scales == nullptr) return;
  const float* const scales = rows.scales + first * rows.scale_stride;
  for (std::int64_t i = 0; i < count; ++i) weights[i] *= scales[i * rows.scale_stride];
}

template <class Element>
PartialSoftmax AttendRowOf(const Head& head, const HeadMemory& memory, std::int64_t query,
                           const MemoryRange& range, float* out) {
  const std::int64_t size = head.head_size;
  const Rows<const Element> keys = memory.key.as<Element>();
  const Rows<const Element> values = memory.value.as<Element>();
  float* const scaled = scratch(Scratch::item, static_cast<std::size_t>(size));
  for (std::int64_t k = 0; k < size; ++k) {
    scaled[k] = head.query[query][k] * (head.scale * std::numbers::log2e_v<float>);
  }
  const std::uint32_t row_key =
      dropout_row_key(head.dropout.key, static_cast<std::uint64_t>(head.first_row + query));
  const std::uint32_t threshold = dropout_threshold(head.dropout.rate);

  HWY_ALIGN float weights[chunk];
  PartialSoftmax state{-std::numeric_limits<float>::infinity(), 0.0F};
  std::fill_n(out, size, 0.0F);
  for (std::int64_t s = range.begin; s < range.end; s += chunk) {
    const std::int64_t count = std::min(chunk, range.end - s);
    ScoreChunk<Element>(scaled, {keys[s], keys.stride}, count, size, weights);
    ApplyScales(memory.key, s, count, weights);
    for (std::int64_t i = 0; i < kRowsAhead; ++i) FetchRow(values[s + i], size);
    const float rescale = SoftmaxChunk(count, weights, state);
    if (head.dropout.rate > 0.0F) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto column = static_cast<std::uint32_t>(s + i);
        if (dropout_bits(row_key, column) < threshold) weights[i] = 0.0F;
      }
    }
    ApplyScales(memory.value, s, count, weights);
    MixChunk<Element>(weights, {values[s], values.stride}, count, size, rescale, out);
  }
  return state;
}

PartialSoftmax AttendRow(const Head& head, const HeadMemory& memory, std::int64_t query,
                         const MemoryRange& range, float* out) {
  switch (memory.key.type) {
    case CacheType::bf16: return AttendRowOf<std::uint16_t>(head, memory, query, range, out);
    case CacheType::int8: return AttendRowOf<std::int8_t>(head, memory, query, range, out);
    case CacheType::f32: break;
  }
  return AttendRowOf<float>(head, memory, query, range, out);
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

HWY_EXPORT(AttendRow);
HWY_EXPORT(QuantiseRow);
HWY_EXPORT(RestoreRow);

PartialSoftmax attend_row(const Head& head, const HeadMemory& memory, std::int64_t query,
                          const MemoryRange& range, float* out) {
  return HWY_DYNAMIC_DISPATCH(AttendRow)(head, memory, query, range, out);
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
