// Vector functions shared by the kernels, once per instruction set. Errors are the largest that
// tests/kernels/cpu/vector_math_test.cc finds on any set.

#if defined(HEED_KERNELS_CPU_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_VECTOR_MATH_INL_H_
#undef HEED_KERNELS_CPU_VECTOR_MATH_INL_H_
#else
#define HEED_KERNELS_CPU_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Float = hn::Vec<Floats>;

inline constexpr std::size_t kLineBytes = 64;  // of a cache

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

// Steps between two branches, of as many loads each, that add to `sums` accumulators. Engines of
// WebAssembly place all loads before the arithmetic: what these and a product hold must fit into
// the 15 registers that they leave of x86-64's 16.
constexpr int StepsBetweenBranches([[maybe_unused]] int loads, [[maybe_unused]] int sums) {
#if HWY_ARCH_WASM
  return sums + loads <= 14 ? (14 - sums) / loads : 1;
#else
  return 8;
#endif
}

// Prevents the compiler from reloading a vector for each use, and from taking it apart: sums of
// integers it would otherwise add in another order, which keeps every term until the end.
template <class Vector>
HWY_INLINE void KeepInRegister([[maybe_unused]] Vector& value) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  asm("" : "+v"(value.raw));
#endif
}

// Prevents the compiler from computing a pointer from another one.
HWY_INLINE void KeepPointer(const float*& pointer) { asm("" : "+r"(pointer)); }

// sum += a·b, where `sum` keeps its register: with sixteen of them the compiler otherwise moves
// sums from one to another, and some through memory.
HWY_INLINE void AddProduct(Float a, Float b, Float& sum) {
#if HWY_TARGET == HWY_AVX2
  auto total = sum.raw;
  asm("vfmadd231ps %2, %1, %0" : "+x"(total) : "x"(a.raw), "x"(b.raw));
  sum = Float{total};
#elif HWY_TARGET == HWY_SSE4
  auto total = sum.raw, product = a.raw;
  asm("mulps %2, %1\n\taddps %1, %0" : "+x"(total), "+x"(product) : "x"(b.raw));
  sum = Float{total};
#else
  sum = hn::MulAdd(a, b, sum);
#endif
}

// The first count < Lanes(d) elements, the rest zero; touches no memory after them.
HWY_INLINE Float LoadPartial(Floats d, const float* from, std::size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, from, count * sizeof(float));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
}

HWY_INLINE void StorePartial(Float value, Floats d, float* to, std::size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(value, d, lanes);
  std::memcpy(to, lanes, count * sizeof(float));
#else
  hn::BlendedStore(value, hn::FirstN(d, count), d, to);
#endif
}

// Loads a vector of quantised elements as floats: bf16 bit patterns, and int8 without its scale.
HWY_INLINE Float LoadElements(Floats d, const float* from) { return hn::LoadU(d, from); }
HWY_INLINE Float LoadElements(Floats d, const std::uint16_t* from) {
  const hn::Rebind<std::uint16_t, Floats> dh;
  const hn::RebindToUnsigned<Floats> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, from))));
}
HWY_INLINE Float LoadElements(Floats d, const std::int8_t* from) {
  const hn::Rebind<std::int8_t, Floats> db;
  const hn::RebindToSigned<Floats> di;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, from)));
}

// The first count < Lanes(d) of them, the rest zero.
HWY_INLINE Float LoadElementsPartial(Floats d, const float* from, std::size_t count) {
  return LoadPartial(d, from, count);
}
template <class Element>
HWY_INLINE Float LoadElementsPartial(Floats d, const Element* from, std::size_t count) {
  HWY_ALIGN Element lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, from, count * sizeof(Element));
  return LoadElements(d, lanes);
}

// Calls body(offset, load, store) for every vector of [0, count): load(pointer), to floats or to
// quantised elements, and store(value, pointer) process whole vectors, and at the end the
// remaining elements.
template <class Body>
HWY_INLINE void ForEachVector(std::size_t count, Body&& body) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    body(
        i, [&](const auto* from) HWY_ATTR { return LoadElements(d, from + i); },
        [&](Float value, float* to) HWY_ATTR { hn::StoreU(value, d, to + i); });
  }
  if (i < count) {
    body(
        i, [&](const auto* from) HWY_ATTR { return LoadElementsPartial(d, from + i, count - i); },
        [&](Float value, float* to) HWY_ATTR { StorePartial(value, d, to + i, count - i); });
  }
}

// To the nearest bf16, halves to even, for f32 arithmetic on operands of that precision; NaN stays
// NaN.
HWY_INLINE Float RoundedToBf16(Float value) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFU)));
  const Float kept = hn::BitCast(d, hn::And(rounded, hn::Set(du, 0xFFFF0000U)));
  return hn::IfThenElse(hn::IsNaN(value), value, kept);
}

HWY_INLINE void RoundToBf16(float* values, std::int64_t count) {
  ForEachVector(static_cast<std::size_t>(count),
                [&](std::size_t, auto load, auto store)
                    HEED_INLINE_LAMBDA { store(RoundedToBf16(load(values)), values); });
}

// max(bound, x) and min(bound, x), but NaN where x is. On x86 an instruction has that for this
// order of operands; elsewhere Highway's functions may return the bound.
HWY_INLINE Float AtLeast(Floats d, float bound, Float x) {
  const Float least = hn::Set(d, bound);
  return HWY_ARCH_X86 ? hn::Max(least, x) : hn::IfThenElse(hn::Lt(x, least), least, x);
}
HWY_INLINE Float AtMost(Floats d, float bound, Float x) {
  const Float most = hn::Set(d, bound);
  return HWY_ARCH_X86 ? hn::Min(most, x) : hn::IfThenElse(hn::Gt(x, most), most, x);
}

// Adding 1.5·2^23 rounds |x| < 2^22 to an integer, which the sum's low bits then hold in two's
// complement: one addition instead of a rounding and a conversion.
HWY_INLINE Float RoundingShift(Floats d) { return hn::Set(d, 12582912.0F); }

// value · 2^n, for n held by `shifted` = n + RoundingShift and a result in the normal range.
HWY_INLINE Float ScaleByPower(Floats d, Float value, Float shifted) {
  const hn::RebindToSigned<Floats> di;
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, value), exponent));
}

// 2^x for x <= 127; below −100 the result stays at 2^−100, negligible beside 1. Relative
// error 1.9e-7. For x = n + f, |f| <= 1/2: a minimax polynomial of degree 5 for 2^f (error 9.2e-8)
// scaled by 2^n.
HWY_INLINE Float Exp2Clamped(Floats d, Float x) {
  x = AtLeast(d, -100.0F, x);
  const Float shifted = hn::Add(x, RoundingShift(d));
  const Float fraction = hn::Sub(x, hn::Sub(shifted, RoundingShift(d)));
  Float power = hn::Set(d, 1.326472641633268e-3F);
  power = hn::MulAdd(power, fraction, hn::Set(d, 9.6715130169051347e-3F));
  power = hn::MulAdd(power, fraction, hn::Set(d, 5.5507337502038324e-2F));
  power = hn::MulAdd(power, fraction, hn::Set(d, 0.24022242077174092F));
  power = hn::MulAdd(power, fraction, hn::Set(d, 0.69314697758871621F));
  power = hn::MulAdd(power, fraction, hn::Set(d, 1.0F));
  return ScaleByPower(d, power, shifted);
}

// e^x for −87.3 <= x <= 88. Relative error 1.2e-7. For x = n·ln 2 + r: 1 + r + r²·(minimax
// polynomial, error 3.1e-9) scaled by 2^n. ln 2 is taken in two parts, the first short enough that
// n times it is exact.
struct ReducedExponent {
  Float r;        // the remainder
  Float tail;     // the polynomial
  Float shifted;  // n + RoundingShift
};
HWY_INLINE ReducedExponent ReduceExponent(Floats d, Float x) {
  const Float shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), RoundingShift(d));
  const Float n = hn::Sub(shifted, RoundingShift(d));
  Float r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440055e-4F), r);
  Float tail = hn::Set(d, 1.3814602834745305e-3F);
  tail = hn::MulAdd(tail, r, hn::Set(d, 8.3687170849956677e-3F));
  tail = hn::MulAdd(tail, r, hn::Set(d, 4.166838797698891e-2F));
  tail = hn::MulAdd(tail, r, hn::Set(d, 0.16666520629491762F));
  tail = hn::MulAdd(tail, r, hn::Set(d, 0.49999993448041551F));
  return {r, tail, shifted};
}

HWY_INLINE Float ExpWithin(Floats d, Float x) {
  const ReducedExponent e = ReduceExponent(d, x);
  const Float power = hn::MulAdd(hn::Mul(e.r, e.r), e.tail, hn::Add(e.r, hn::Set(d, 1.0F)));
  return ScaleByPower(d, power, e.shifted);
}

// tanh x = m / (m + 2) for m = e^2x − 1, which keeps its relative precision near 0. NaN stays NaN.
HWY_INLINE Float Tanh(Floats d, Float x) {
  const Float bounded = AtMost(d, 20.0F, AtLeast(d, -20.0F, hn::Add(x, x)));
  const ReducedExponent e = ReduceExponent(d, bounded);
  const Float scale = ScaleByPower(d, hn::Set(d, 1.0F), e.shifted);
  const Float minus_one = hn::MulAdd(hn::Mul(e.r, e.r), e.tail, e.r);  // e^r − 1
  const Float m = hn::MulAdd(scale, minus_one, hn::Sub(scale, hn::Set(d, 1.0F)));
  return hn::Div(m, hn::Add(m, hn::Set(d, 2.0F)));
}

// e^x; 0 below −87.3, where floats end, and e^88 above 88.
HWY_INLINE Float Exp(Floats d, Float x) {
  const auto vanishing = hn::Lt(x, hn::Set(d, -87.3F));
  const Float clamped = AtMost(d, 88.0F, AtLeast(d, -87.3F, x));
  return hn::IfThenZeroElse(vanishing, ExpWithin(d, clamped));
}

// 1/x for x in [1, 2^125]: an estimate and Newton steps, which square its error: 2^-11 at most on
// x86, 2^-8 on ARM. Relative error 2.1e-7.
HWY_INLINE Float Reciprocal(Floats d, Float x) {
  constexpr int steps = HWY_ARCH_X86 ? 1 : 2;
  Float estimate = hn::ApproximateReciprocal(x);
  for (int step = 0; step < steps; ++step) {
    estimate = hn::Mul(estimate, hn::NegMulAdd(x, estimate, hn::Set(d, 2.0F)));
  }
  return estimate;
}

// The logistic function σ(x) = 1/(1 + e^−x) and its derivative σ·(1 − σ) = e^−x·σ², which in this
// form keeps its relative precision where σ nears 1. Relative errors 2.9e-7 and 5e-7 for |x| < 80.
struct LogisticValue {
  Float value;
  Float derivative;
};

HWY_INLINE LogisticValue Logistic(Floats d, Float x) {
  const Float bounded = AtMost(d, 86.0F, AtLeast(d, -87.0F, hn::Neg(x)));
  const Float power = ExpWithin(d, bounded);
  const Float value = Reciprocal(d, hn::Add(hn::Set(d, 1.0F), power));
  return {value, hn::Mul(hn::Mul(power, value), value)};
}

// Φ(x) = ½·(1 + erf(x/√2)) and φ(x) = Φ'(x)·√(2π) = exp(−x²/2). Φ has an absolute error of 3.1e-7:
// Φ(−|x|) = φ(x)·t·P(t) with t = 1/(1 + 0.3·|x|) and P the minimax polynomial of eight terms for
// |x| <= 9 (error 1.3e-8); the form is that of Hastings' erf approximations (1955).
struct Normal {
  Float distribution;
  Float density;
};

HWY_INLINE Normal StandardNormal(Floats d, Float x) {
  const Float magnitude = hn::Abs(x);
  const Float density = Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5F)));
  const Float bounded = AtMost(d, 1e6F, magnitude);
  const Float t = Reciprocal(d, hn::MulAdd(bounded, hn::Set(d, 0.3F), hn::Set(d, 1.0F)));
  Float polynomial = hn::Set(d, 0.036247909382357523F);
  polynomial = hn::MulAdd(polynomial, t, hn::Set(d, -0.15917253246831228F));
  polynomial = hn::MulAdd(polynomial, t, hn::Set(d, 0.20888310891047269F));
  polynomial = hn::MulAdd(polynomial, t, hn::Set(d, -0.055045577891092363F));
  polynomial = hn::MulAdd(polynomial, t, hn::Set(d, 0.1286515538334857F));
  polynomial = hn::MulAdd(polynomial, t, hn::Set(d, 0.10012541684174018F));
  polynomial = hn::MulAdd(polynomial, t, hn::Set(d, 0.120671378876612F));
  polynomial = hn::MulAdd(polynomial, t, hn::Set(d, 0.11963875492273076F));
  const Float tail = hn::Mul(hn::Mul(density, t), polynomial);
  const auto negative = hn::Lt(x, hn::Zero(d));
  return {hn::IfThenElse(negative, tail, hn::Sub(hn::Set(d, 1.0F), tail)), density};
}

// Which of the columns `column`, `column` + 1, ... of a row dropout keeps: dropout_bits() of
// dropout_hash.h, vectorised. Row keys may differ from lane to lane.
using Words = hn::RebindToUnsigned<Floats>;

HWY_INLINE hn::Mask<Floats> Kept(Floats d, hn::Vec<Words> row_keys, hn::Vec<Words> column_products,
                                 hn::Vec<Words> threshold) {
  const Words dw;
  auto mixed = hn::Add(row_keys, column_products);
  mixed = hn::Mul(hn::Xor(mixed, hn::ShiftRight<16>(mixed)), hn::Set(dw, 0x7FEB352DU));
  mixed = hn::Mul(hn::Xor(mixed, hn::ShiftRight<15>(mixed)), hn::Set(dw, 0x846CA68BU));
  mixed = hn::ShiftRight<8>(hn::Xor(mixed, hn::ShiftRight<16>(mixed)));
  // both sides are below 2^24, so that signed comparison serves
  const hn::RebindToSigned<Floats> di;
  const auto dropped = hn::Lt(hn::BitCast(di, mixed), hn::BitCast(di, threshold));
  return hn::RebindMask(d, hn::Not(dropped));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
