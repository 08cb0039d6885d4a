// Shared by products with integer weights and their dequantisation, once per instruction set.

#if defined(HEED_KERNELS_CPU_QUANTISED_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_QUANTISED_PANELS_INL_H_
#undef HEED_KERNELS_CPU_QUANTISED_PANELS_INL_H_
#else
#define HEED_KERNELS_CPU_QUANTISED_PANELS_INL_H_
#endif

#include "kernels/cpu/quantised_format.h"
#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

using Ints = hn::RebindToSigned<Floats>;
using Int = hn::Vec<Ints>;
using Bytes = hn::Repartition<std::uint8_t, Ints>;

constexpr std::int64_t kGroup = PreparedWeight::group;
constexpr std::int64_t kWidth = PreparedWeight::panel_outputs;
constexpr std::int64_t kQuads = kGroup / 4;      // of inputs, in a group
constexpr std::int64_t kQuadBytes = 4 * kWidth;  // of a panel's four inputs, or eight halves

HWY_INLINE std::int64_t IntLanes() { return static_cast<std::int64_t>(hn::Lanes(Ints())); }

// 32-bit lanes of four weights each, of consecutive outputs.
HWY_INLINE Int LoadQuads(const std::uint8_t* from) {
  return hn::BitCast(Ints(), hn::LoadU(Bytes(), from));
}

HWY_INLINE Int LowHalves(Int bytes) { return hn::And(bytes, hn::Set(Ints(), 0x0F0F0F0F)); }
HWY_INLINE Int HighHalves(Int bytes) { return LowHalves(hn::ShiftRight<4>(bytes)); }

// Bits of every byte, which a mask selects, moved from position `from` to `to`.
template <int from, int to>
HWY_INLINE Int MovedBits(Int bytes, int mask) {
  Int moved = bytes;
  if constexpr (from > to) moved = hn::ShiftRight<from - to>(bytes);
  if constexpr (from < to) moved = hn::ShiftLeft<to - from>(bytes);
  return hn::And(moved, hn::Set(Ints(), mask));
}

// Quads of a group that one load of its first bytes holds: of whole integers, halves or pairs.
template <class Panel>
constexpr int kQuadsOfLoad = Panel::bits == 8   ? 1
                             : Panel::bits >= 4 ? 2
                                                : 4;
// Loads of a group before those of the bits that are stored apart.
template <class Panel>
constexpr int kLoads = static_cast<int>(kQuads) / kQuadsOfLoad<Panel>;

// Quad `quad` of a group's integers. `bytes` are its load, `group` the group's integers of the
// vector's outputs.
template <class Panel, int quad>
HWY_INLINE Int QuadOf(Int bytes, [[maybe_unused]] const std::uint8_t* group) {
  constexpr int bits = Panel::bits;
  [[maybe_unused]] const std::uint8_t* const apart = group + kLoads<Panel> * kQuadBytes;
  if constexpr (bits == 8) {
    return bytes;
  } else if constexpr (bits >= 4) {
    const Int halves = quad % 2 == 0 ? LowHalves(bytes) : HighHalves(bytes);
    if constexpr (bits == 4) return halves;
    if constexpr (bits == 5) {
      return hn::Or(halves, MovedBits<quad, 4>(LoadQuads(apart), 0x10101010));
    }
    if constexpr (bits == 6) {
      const Int pairs = LoadQuads(apart + quad / 4 * kQuadBytes);
      return hn::Or(halves, MovedBits<quad % 4 * 2, 4>(pairs, 0x30303030));
    }
  } else {
    const Int pairs = MovedBits<quad % 4 * 2, 0>(bytes, 0x03030303);
    if constexpr (bits == 2) return pairs;
    return hn::Or(pairs, MovedBits<quad, 2>(LoadQuads(apart), 0x04040404));
  }
}

HWY_INLINE Float LoadScales(Floats d, const std::uint16_t* from) {
  const hn::RebindToUnsigned<Floats> du;
  const hn::Rebind<std::uint16_t, Floats> du16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(du16, from))));
}

// A vector of an array of a number for each output.
HWY_INLINE Float LoadHalfFloats(const std::byte* array, std::int64_t column) {
  const hn::Rebind<hwy::float16_t, Floats> d16;
  return hn::PromoteTo(Floats(),
                       hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(array) + column));
}

template <class Byte>
HWY_INLINE Int LoadBytes(const std::byte* array, std::int64_t column) {
  const hn::Rebind<Byte, Ints> d8;
  return hn::PromoteTo(Ints(), hn::LoadU(d8, reinterpret_cast<const Byte*>(array) + column));
}

// Scales of outputs from `column` on, in half `half` of group `group` of a super-block.
template <class Scales>
HWY_INLINE Float ScalesOf(Scales, const std::byte* block, std::int64_t group, int half,
                          std::int64_t column) {
  const std::byte* const integers = block + Scales::integers(group);
  Int of_group;
  if constexpr (Scales::halves == 1) {
    of_group = LoadBytes<std::uint8_t>(integers, column);
  } else if constexpr (Scales::factors == 1) {
    of_group = LoadBytes<std::int8_t>(integers + half * kWidth, column);
  } else {
    of_group =
        hn::And(LoadBytes<std::uint8_t>(integers + half * kWidth, column), hn::Set(Ints(), 0x0F));
  }
  return hn::Mul(LoadHalfFloats(block, column), hn::ConvertTo(Floats(), of_group));
}
HWY_INLINE Float ScalesOf(Bf16Scales, const std::byte* block, std::int64_t, int,
                          std::int64_t column) {
  return LoadScales(Floats(), reinterpret_cast<const std::uint16_t*>(block) + column);
}
HWY_INLINE Float ScalesOf(F16Scales, const std::byte* block, std::int64_t, int,
                          std::int64_t column) {
  return LoadHalfFloats(block, column);
}
HWY_INLINE Float ScalesOf(F16ScalesAndMinima, const std::byte* block, std::int64_t, int,
                          std::int64_t column) {
  return LoadHalfFloats(block, column);
}

template <class Scales>
constexpr bool kHasMinima = requires {
  Scales::minima;
};

template <class Scales>
HWY_INLINE Float MinimaOf(Scales, const std::byte* block, std::int64_t group, int half,
                          std::int64_t column) {
  const std::byte* const integers = block + Scales::integers(group);
  const Int of_group =
      Scales::halves == 1
          ? LoadBytes<std::uint8_t>(integers + kWidth, column)
          : hn::ShiftRight<4>(LoadBytes<std::uint8_t>(integers + half * kWidth, column));
  return hn::Mul(LoadHalfFloats(block + Scales::minima, column), hn::ConvertTo(Floats(), of_group));
}
HWY_INLINE Float MinimaOf(F16ScalesAndMinima, const std::byte* block, std::int64_t, int,
                          std::int64_t column) {
  return LoadHalfFloats(block + F16ScalesAndMinima::minima, column);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif
