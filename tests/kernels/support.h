// Operands in float and, with the same values, in double; errors; instruction sets; differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/random.h"
#include "kernels/instruction_sets.h"
#include "kernels/placement.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace heed::kernels {

// Half the distance from 1 to the next float: the largest relative error of one rounding.
inline constexpr double unit_roundoff = 1.0 / (1 << 24);

// One tensor in both precisions. `exact` holds precisely the values of `single`.
struct Twin {
  Tensor<float> single;
  Tensor<double> exact;

  Twin() = default;
  explicit Twin(const Shape& shape) : single(shape), exact(shape) {}

  // Normal deviates of the given size, `offset` away from zero.
  void randomise(std::uint64_t stream, double deviation = 1.0, double offset = 0.0) {
    RandomStream random(20, stream);
    for (std::int64_t i = 0; i < single.size(); ++i) {
      single[i] = static_cast<float>(offset + deviation * random.normal());
      exact[i] = static_cast<double>(single[i]);
    }
  }
};

inline Twin random_twin(const Shape& shape, std::uint64_t stream, double deviation = 1.0,
                        double offset = 0.0) {
  Twin twin(shape);
  twin.randomise(stream, deviation, offset);
  return twin;
}

// ‖actual − expected‖ / ‖expected‖; the plain ‖actual‖ when nothing but zeros is expected.
template <class A, class B>
double relative_error(const A& actual, const B& expected) {
  double difference = 0.0, size = 0.0;
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double a = static_cast<double>(actual[i]), b = static_cast<double>(expected[i]);
    difference += (a - b) * (a - b);
    size += b * b;
  }
  return std::sqrt(difference) / (size > 0.0 ? std::sqrt(size) : 1.0);
}

inline double relative_error(const Twin& twin) { return relative_error(twin.single, twin.exact); }

// Whether HEED_TEST_DEVICE names a device. Devices multiply long rows by prepared weights in bf16
// unless integers are refused, and then in f32, whatever the processor does.
inline bool tests_device() { return std::getenv("HEED_TEST_DEVICE") != nullptr; }

// Calls body() with every instruction set of this machine in turn; where HEED_TEST_DEVICE names a
// device, instead there.
template <class Body>
void on_every_instruction_set(Body&& body) {
  if (const char* const name = std::getenv("HEED_TEST_DEVICE")) {
    struct Back {
      ~Back() { compute_on(Device{}); }
    } back;
    SCOPED_TRACE(name);
    compute_on(open_device(name));
    return body();
  }
  struct Restore {
    ~Restore() { use_instruction_set(""); }
  } restore;
  for (const std::string& name : available_instruction_sets()) {
    SCOPED_TRACE("instruction set " + name);
    use_instruction_set(name);
    body();
  }
}

// Compares `gradient`, the analytic derivative of the scalar function loss() by the elements of
// `operand`, with central differences at up to `most` elements spread over it. In double, with
// steps of 1e-5, truncation (step²·f''' ≈ 1e-10) and rounding (1e-16·|f|/step ≈ 1e-10) leave an
// order of magnitude or more to the bound of 1e-6.
template <class Loss>
void expect_gradient(Tensor<double>& operand, const Tensor<double>& gradient, Loss&& loss,
                     const char* name, std::int64_t most = 60) {
  constexpr double step = 1e-5;
  const std::int64_t count = std::min(operand.size(), most);
  double difference = 0.0, size = 0.0;
  RandomStream random(21, static_cast<std::uint64_t>(operand.size()));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at =
        operand.size() <= most
            ? i
            : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(operand.size())));
    const double before = operand[at];
    operand[at] = before + step;
    const double above = loss();
    operand[at] = before - step;
    const double below = loss();
    operand[at] = before;
    const double slope = (above - below) / (2.0 * step);
    difference += (slope - gradient[at]) * (slope - gradient[at]);
    size += slope * slope;
  }
  // a gradient that is zero by symmetry is compared with the loss's own scale, 1
  EXPECT_LE(std::sqrt(difference), 1e-6 * std::max(std::sqrt(size), 1e-2)) << name;
}

// Σ weights·values: turns an output into a scalar whose gradient by that output is `weights`.
inline double weigh(const Tensor<double>& weights, const Tensor<double>& values) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < values.size(); ++i) sum += weights[i] * values[i];
  return sum;
}

}  // namespace heed::kernels
