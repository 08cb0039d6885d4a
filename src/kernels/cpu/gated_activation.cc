// An activation that gates another projection.
#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gated_activation.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// A range of elements of each operand.
struct GatedElements {
  const float* gate;
  const float* up;
  std::size_t count;
};

struct GatedElementGradients {
  const float* d_out;
  float* d_gate;  // may be d_out
  float* d_up;
};

template <Activation activation>
void GateAll(const GatedElements& elements, float* out) {
  ForEachVector(elements.count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    store(hn::Mul(Activate<activation>(Floats(), load(elements.gate)), load(elements.up)), out);
  });
}

template <Activation activation>
void DifferentiateGates(const GatedElements& elements, const GatedElementGradients& gradients) {
  ForEachVector(elements.count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    const Float x = load(elements.gate), d_out = load(gradients.d_out);
    const Float d_activation = hn::Mul(d_out, load(elements.up));
    store(hn::Mul(d_out, Activate<activation>(Floats(), x)), gradients.d_up);
    store(hn::Mul(d_activation, Derivative<activation>(Floats(), x)), gradients.d_gate);
  });
}

void GateRange(Activation activation, const float* gate, const float* up, std::size_t count,
               float* out) {
  WithActivation(activation, [&](auto kind) { GateAll<kind()>({gate, up, count}, out); });
}

void DifferentiateGateRange(Activation activation, const float* gate, const float* up,
                            std::size_t count, const float* d_out, float* d_gate, float* d_up) {
  WithActivation(activation, [&](auto kind) {
    DifferentiateGates<kind()>({gate, up, count}, {d_out, d_gate, d_up});
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(GateRange);
HWY_EXPORT(DifferentiateGateRange);

namespace {

// The least number of elements for a second thread: a few microseconds of work.
constexpr std::int64_t gate_grain = 4096;

// body(begin, count) on ranges of whole cache lines.
template <class Body>
void over_ranges(std::int64_t size, Body&& body) {
  parallel_ranges((size + 15) / 16, gate_grain / 16, [&](std::int64_t begin, std::int64_t end) {
    body(begin * 16, static_cast<std::size_t>(std::min(end * 16, size) - begin * 16));
  });
}

}  // namespace

void cpu::gated_activation_forward(View<const float> gate, View<const float> up,
                                   Activation activation, View<float> out) {
  checks::same_shape(gate, up, "gate", "up");
  checks::same_shape(gate, out, "gate", "out");
  over_ranges(gate.size(), [&](std::int64_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(GateRange)
    (activation, gate.data() + begin, up.data() + begin, count, out.data() + begin);
  });
}

void cpu::gated_activation_backward(View<const float> gate, View<const float> up,
                                    Activation activation, View<const float> d_out,
                                    View<float> d_gate, View<float> d_up) {
  checks::gated_activation_backward(gate, up, d_out, d_gate, d_up);
  over_ranges(gate.size(), [&](std::int64_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(DifferentiateGateRange)
    (activation, gate.data() + begin, up.data() + begin, count, d_out.data() + begin,
     d_gate.data() + begin, d_up.data() + begin);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
