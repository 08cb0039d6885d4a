// Products of four inputs of x by four weights, in bytes, in every lane, once per instruction set:
// for Highway's targets, with HEED_NEON_DOT_PRODUCTS defined for AArch64's dot products of bytes,
// and with HEED_AVX_VNNI_PRODUCTS for those of x86-64 beside AVX2 alone.

#if defined(HEED_KERNELS_CPU_BYTE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_BYTE_PRODUCTS_INL_H_
#undef HEED_KERNELS_CPU_BYTE_PRODUCTS_INL_H_
#else
#define HEED_KERNELS_CPU_BYTE_PRODUCTS_INL_H_
#endif

#include <type_traits>

#include "kernels/cpu/neon_instructions.h"
#include "kernels/cpu/quantised_panels-inl.h"

#if !defined(HEED_AVX_VNNI_PRODUCTS) || HWY_TARGET == HWY_AVX2
// Machines of Highway's target AVX3_DL have dot products of bytes (VNNI), but its older releases do
// not enable them in the compiler.
#undef HEED_DOT_PRODUCTS_OF_BYTES
#undef HEED_BEFORE_BYTE_PRODUCTS
#undef HEED_AFTER_BYTE_PRODUCTS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define HEED_DOT_PRODUCTS_OF_BYTES 1
#define HEED_BEFORE_BYTE_PRODUCTS HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni")
#define HEED_AFTER_BYTE_PRODUCTS HWY_POP_ATTRIBUTES
#elif defined(HEED_AVX_VNNI_PRODUCTS)
#define HEED_DOT_PRODUCTS_OF_BYTES 1
#define HEED_BEFORE_BYTE_PRODUCTS HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avxvnni")
#define HEED_AFTER_BYTE_PRODUCTS HWY_POP_ATTRIBUTES
#elif defined(HEED_NEON_DOT_PRODUCTS)
#define HEED_DOT_PRODUCTS_OF_BYTES 1
#define HEED_BEFORE_BYTE_PRODUCTS HWY_PUSH_ATTRIBUTES(HEED_NEON_DOT)
#define HEED_AFTER_BYTE_PRODUCTS HWY_POP_ATTRIBUTES
#else
#define HEED_DOT_PRODUCTS_OF_BYTES 0
#define HEED_BEFORE_BYTE_PRODUCTS HWY_BEFORE_NAMESPACE();
#define HEED_AFTER_BYTE_PRODUCTS HWY_AFTER_NAMESPACE();
#endif

HEED_BEFORE_BYTE_PRODUCTS
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace {  // all of this is compiled twice for AVX2 and for NEON

// Quads of a group, or of the half of one that has a scale of its own.
template <class Panel>
constexpr int kSumQuads = static_cast<int>(kQuads) / Panel::Scales::halves;

// Four inputs of x against four unsigned weights in every lane: the types of a panel's weights, of
// inputs and of sums of products.
#if HEED_DOT_PRODUCTS_OF_BYTES
#undef HEED_PRODUCTS_OF_BYTES
#define HEED_PRODUCTS_OF_BYTES 0
template <class Panel>
struct Quads {
  using Weights = Int;
  using Inputs = Int;
  using Sum = Int;
};

template <class Panel>
HWY_INLINE Int InputsOf(Int quad) {
  return quad;
}
HWY_INLINE void Clear(Int& sum) { sum = hn::Zero(Ints()); }
#if HWY_ARCH_X86
constexpr bool kSignedWeights = false;
HWY_INLINE void AddDot(Int weights, Int x, Int& sum) {
#if defined(HEED_AVX_VNNI_PRODUCTS)
  sum = Int{_mm256_dpbusd_avx_epi32(sum.raw, weights.raw, x.raw)};
#else
  sum = Int{_mm512_dpbusd_epi32(sum.raw, weights.raw, x.raw)};
#endif
}
#else
constexpr bool kSignedWeights = true;
HWY_INLINE void AddDot(Int weights, Int x, Int& sum) {
  sum = Int{vdotq_s32(sum.raw, vreinterpretq_s8_s32(weights.raw), vreinterpretq_s8_s32(x.raw))};
}
#endif
// Signed bytes hold shorter integers with their offset, those of eight bits without it.
template <class Panel>
constexpr bool kDropsOffset = kSignedWeights&& Panel::bits == 8;
template <class Panel>
constexpr bool kSumsInPairs = false;
template <class Panel>
constexpr bool kWidensPairs = false;
template <class Panel>
HWY_INLINE Int WeightsOf(Int quads) {
  return kDropsOffset<Panel> ? hn::Xor(quads, hn::Set(Ints(), static_cast<int>(0x80808080U)))
                             : quads;
}
HWY_INLINE Int Total(Int sum) { return sum; }
#else
using Pairs = hn::Repartition<std::int16_t, Ints>;
using Pair = hn::Vec<Pairs>;

// Without such an instruction: products of pairs of 16 bits, of the even and of the odd bytes.
struct EvenAndOdd {
  Pair even, odd;
};
struct TwoSums {
  Int first, second;
};
template <class Panel>
struct Quads {
  using Weights = EvenAndOdd;
  using Inputs = EvenAndOdd;
  using Sum = TwoSums;
};

HWY_INLINE void Clear(TwoSums& sum) { sum = {hn::Zero(Ints()), hn::Zero(Ints())}; }
HWY_INLINE void AddDot(const EvenAndOdd& weights, const EvenAndOdd& x, TwoSums& sum) {
  const Ints d;
  sum.first = hn::ReorderWidenMulAccumulate(d, weights.even, x.even, sum.first, sum.second);
  sum.first = hn::ReorderWidenMulAccumulate(d, weights.odd, x.odd, sum.first, sum.second);
}
HWY_INLINE Int Total(const TwoSums& sum) {
  return hn::RearrangeToOddPlusEven(sum.first, sum.second);
}

#undef HEED_PRODUCTS_OF_BYTES
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define HEED_PRODUCTS_OF_BYTES 1
#else
#define HEED_PRODUCTS_OF_BYTES 0
#endif
#if HEED_PRODUCTS_OF_BYTES
// Products of bytes, the first unsigned, are summed in pairs, to 16 bits.
#if HWY_TARGET == HWY_AVX2
HWY_INLINE Pair ProductsOfBytes(Int weights, Int x) {
  return Pair{_mm256_maddubs_epi16(weights.raw, x.raw)};
}
HWY_INLINE Int SumsOfPairs(Pair pairs) {
  return Int{_mm256_madd_epi16(pairs.raw, _mm256_set1_epi16(1))};
}
#else
HWY_INLINE Pair ProductsOfBytes(Int weights, Int x) {
  return Pair{_mm512_maddubs_epi16(weights.raw, x.raw)};
}
HWY_INLINE Int SumsOfPairs(Pair pairs) {
  return Int{_mm512_madd_epi16(pairs.raw, _mm512_set1_epi16(1))};
}
#endif

// Whether these hold all quads of a sum: for four bits 8 · 2 · 15 · 127 = 30,480.
template <class Panel>
constexpr bool kSumsInPairs = kSumQuads<Panel> * 2 * ((1 << Panel::bits) - 1) * 127 <= 32767;
template <class Panel>
requires(kSumsInPairs<Panel>) struct Quads<Panel> {
  using Weights = Int;
  using Inputs = Int;
  using Sum = Pair;
};
HWY_INLINE void Clear(Pair& sum) { sum = hn::Zero(Pairs()); }
HWY_INLINE void AddDot(Int weights, Int x, Pair& sum) {
  sum = hn::Add(sum, ProductsOfBytes(weights, x));
}
HWY_INLINE Int Total(Pair sum) { return SumsOfPairs(sum); }

// Those of five and six bits are widened after two quads: 2 · 2 · 63 · 127 = 32,004.
template <class Panel>
constexpr bool kWidensPairs = !kSumsInPairs<Panel> && Panel::bits < 8;
template <class Panel>
requires(kWidensPairs<Panel>) struct Quads<Panel> {
  using Weights = Int;
  using Inputs = Int;
  using Sum = Int;
};
HWY_INLINE void Clear(Int& sum) { sum = hn::Zero(Ints()); }
HWY_INLINE Int Total(Int sum) { return sum; }
#else
template <class Panel>
constexpr bool kSumsInPairs = false;
template <class Panel>
constexpr bool kWidensPairs = false;
#endif

// Where bytes have a sign that another byte's can be given, one factor's magnitudes are multiplied
// by the other, which takes its signs: weights of eight bits, without their offset, which may be
// −128 in blocks and are not in int8, so that there the magnitudes are those of x, for all vectors
// at once. A pair is at most 2 · 128 · 127 = 32,512.
template <class Panel>
constexpr bool kDropsOffset = HWY_TARGET == HWY_AVX2&& Panel::bits == 8;
#if HWY_TARGET == HWY_AVX2
struct SignsAndMagnitudes {
  Int signs, magnitudes;
};
HWY_INLINE SignsAndMagnitudes SignsAndMagnitudesOf(Int bytes) {
  return {bytes, Int{_mm256_abs_epi8(bytes.raw)}};
}
template <class Panel>
requires(kDropsOffset<Panel>) struct Quads<Panel> {
  using Weights = SignsAndMagnitudes;
  using Inputs = Int;
  using Sum = Int;
};
template <>
struct Quads<Int8Panel> {
  using Weights = Int;
  using Inputs = SignsAndMagnitudes;
  using Sum = Int;
};
HWY_INLINE void AddDot(const SignsAndMagnitudes& one, Int other, Int& sum) {
  const Int with_signs{_mm256_sign_epi8(other.raw, one.signs.raw)};
  sum = hn::Add(sum, SumsOfPairs(ProductsOfBytes(one.magnitudes, with_signs)));
}
HWY_INLINE void AddDot(Int weights, const SignsAndMagnitudes& x, Int& sum) {
  AddDot(x, weights, sum);
}
#endif

template <class Panel>
HWY_INLINE typename Quads<Panel>::Weights WeightsOf(Int quads) {
  if constexpr (kSumsInPairs<Panel> || kWidensPairs<Panel>) {
    return quads;
  } else if constexpr (kDropsOffset<Panel>) {
#if HWY_TARGET == HWY_AVX2
    const Int weights = hn::Xor(quads, hn::Set(Ints(), static_cast<int>(0x80808080U)));
    if constexpr (std::is_same_v<Panel, Int8Panel>) {
      return weights;
    } else {
      return SignsAndMagnitudesOf(weights);
    }
#endif
  } else {
    const hn::RebindToUnsigned<Pairs> du;
    const auto pairs = hn::BitCast(du, quads);
    return {hn::BitCast(Pairs(), hn::And(pairs, hn::Set(du, 0xFF))),
            hn::BitCast(Pairs(), hn::ShiftRight<8>(pairs))};
  }
}
template <class Panel>
HWY_INLINE typename Quads<Panel>::Inputs InputsOf(Int quad) {
  if constexpr (kSumsInPairs<Panel> || kWidensPairs<Panel>) {
    return quad;
  } else if constexpr (kDropsOffset<Panel>) {
#if HWY_TARGET == HWY_AVX2
    if constexpr (std::is_same_v<Panel, Int8Panel>) {
      return SignsAndMagnitudesOf(quad);
    } else {
      return quad;
    }
#endif
  } else {
    const auto pairs = hn::BitCast(Pairs(), quad);
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), hn::ShiftRight<8>(pairs)};
  }
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HEED_AFTER_BYTE_PRODUCTS
#endif

#endif  // per-target include guard
