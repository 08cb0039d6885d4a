// Activations and their derivatives on a vector, once per instruction set.

#if defined(HEED_KERNELS_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_ACTIVATION_INL_H_
#undef HEED_KERNELS_CPU_ACTIVATION_INL_H_
#else
#define HEED_KERNELS_CPU_ACTIVATION_INL_H_
#endif

#include "kernels/cpu/vector_math-inl.h"
#include "kernels/operands.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// gelu_tanh(x) = ½·x·(1 + tanh u) = x·logistic(2u), u = √(2/π)·(x + 0.044715·x³)
inline constexpr float twice_tanh_scale = 1.5957691216057308F;  // 2·√(2/π)
inline constexpr float cubic = 0.044715F;
inline constexpr float density_scale = 0.3989422804014327F;  // 1/√(2π)

HWY_INLINE Float TwiceU(Floats d, Float x, Float square) {
  const Float series =
      hn::MulAdd(square, hn::Set(d, cubic * twice_tanh_scale), hn::Set(d, twice_tanh_scale));
  return hn::Mul(x, series);
}

template <Activation activation>
HWY_INLINE Float Activate(Floats d, Float x) {
  if constexpr (activation == Activation::gelu_tanh) {
    return hn::Mul(x, Logistic(d, TwiceU(d, x, hn::Mul(x, x))).value);
  } else if constexpr (activation == Activation::gelu_erf) {
    return hn::Mul(x, StandardNormal(d, x).distribution);
  } else if constexpr (activation == Activation::silu) {
    // below −86 the logistic function is clamped, which a large x would enlarge
    const auto vanishing = hn::Lt(x, hn::Set(d, -86.0F));
    return hn::IfThenZeroElse(vanishing, hn::Mul(x, Logistic(d, x).value));
  } else if constexpr (activation == Activation::relu2) {
    const Float positive = AtLeast(d, 0.0F, x);
    return hn::Mul(positive, positive);
  } else {
    return AtLeast(d, 0.0F, x);
  }
}

template <Activation activation>
HWY_INLINE Float Derivative(Floats d, Float x) {
  if constexpr (activation == Activation::gelu_tanh) {
    // (x·σ(v))' = σ + x·v'·σ·(1 − σ)
    const Float square = hn::Mul(x, x);
    const LogisticValue logistic = Logistic(d, TwiceU(d, x, square));
    const Float slope =
        hn::MulAdd(square, hn::Set(d, 3 * cubic * twice_tanh_scale), hn::Set(d, twice_tanh_scale));
    return hn::MulAdd(hn::Mul(x, slope), logistic.derivative, logistic.value);
  } else if constexpr (activation == Activation::gelu_erf) {
    const Normal normal = StandardNormal(d, x);
    return hn::MulAdd(hn::Mul(x, hn::Set(d, density_scale)), normal.density, normal.distribution);
  } else if constexpr (activation == Activation::silu) {
    // (x·σ(x))' = σ + x·σ·(1 − σ)
    const auto vanishing = hn::Lt(x, hn::Set(d, -86.0F));
    const LogisticValue logistic = Logistic(d, x);
    return hn::IfThenZeroElse(vanishing, hn::MulAdd(x, logistic.derivative, logistic.value));
  } else if constexpr (activation == Activation::relu2) {
    const Float positive = AtLeast(d, 0.0F, x);
    return hn::Add(positive, positive);
  } else {
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0F));
  }
}

// body(kind) of an activation that is known when it is compiled: kind() is the activation.
template <class Body, std::size_t... kinds>
HWY_INLINE void WithActivationOf(Activation activation, const Body& body,
                                 std::index_sequence<kinds...>) {
  const auto is_done = [&](auto kind) HEED_INLINE_LAMBDA {
    if (activation != kind()) return false;
    body(kind);
    return true;
  };
  (void)(is_done(std::integral_constant<Activation, activations[kinds].activation>()) || ...);
}

template <class Body>
HWY_INLINE void WithActivation(Activation activation, const Body& body) {
  WithActivationOf(activation, body, std::make_index_sequence<activation_count>());
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
