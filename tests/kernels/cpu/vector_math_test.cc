// The errors that vector_math-inl.h states, measured on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../tests/kernels/cpu/vector_math_test.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

enum Function {
  exp2_clamped,
  exponential,
  reciprocal,
  logistic,
  logistic_slope,
  distribution,
  hyperbolic_tangent
};

void Evaluate(int function, const float* x, std::size_t count, float* out) {
  ForEachVector(count, [&](std::size_t, auto load, auto store) HWY_ATTR {
    const Floats d;
    const Float value = load(x);
    switch (function) {
      case exp2_clamped: return store(Exp2Clamped(d, value), out);
      case exponential: return store(Exp(d, value), out);
      case reciprocal: return store(Reciprocal(d, value), out);
      case logistic: return store(Logistic(d, value).value, out);
      case logistic_slope: return store(Logistic(d, value).derivative, out);
      case hyperbolic_tangent: return store(Tanh(d, value), out);
      default: return store(StandardNormal(d, value).distribution, out);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(Evaluate);

namespace {

enum class Kind { relative, absolute };

struct Claim {
  const char* name;
  int function;
  double from, to;
  double (*exact)(double);
  Kind kind;
  double error;
};

double exact_exp2(double x) { return std::exp2(x); }
double exact_exp(double x) { return std::exp(x); }
double exact_reciprocal(double x) { return 1.0 / x; }
double exact_logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double exact_slope(double x) { return std::exp(-x) / std::pow(1.0 + std::exp(-x), 2); }
double exact_tanh(double x) { return std::tanh(x); }
double exact_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

TEST(VectorMath, ErrsAsStated) {
  const Claim claims[] = {
      {"2^x", 0, -100.0, 127.0, exact_exp2, Kind::relative, 1.9e-7},
      {"e^x", 1, -87.2, 88.0, exact_exp, Kind::relative, 1.2e-7},
      {"1/x", 2, 1.0, 1e6, exact_reciprocal, Kind::relative, 2.1e-7},
      {"logistic", 3, -86.0, 86.0, exact_logistic, Kind::relative, 2.9e-7},
      {"logistic slope", 4, -80.0, 80.0, exact_slope, Kind::relative, 5e-7},
      {"normal distribution", 5, -20.0, 20.0, exact_distribution, Kind::absolute, 3.1e-7},
      {"tanh", 6, -12.0, 12.0, exact_tanh, Kind::relative, 3e-7},
      {"tanh of small numbers", 6, 1e-9, 1e-3, exact_tanh, Kind::relative, 3e-7},
  };
  constexpr std::int64_t points = 400001;
  Tensor<float> x(Shape{points}), out(Shape{points});
  for (const Claim& claim : claims) {
    for (std::int64_t i = 0; i < points; ++i) {
      x[i] = static_cast<float>(claim.from + (claim.to - claim.from) * static_cast<double>(i) /
                                                 static_cast<double>(points - 1));
    }
    on_every_instruction_set([&] {
      HWY_DYNAMIC_DISPATCH(Evaluate)
      (claim.function, x.data(), static_cast<std::size_t>(points), out.data());
      double worst = 0.0, at = 0.0;
      for (std::int64_t i = 0; i < points; ++i) {
        const double exact = claim.exact(static_cast<double>(x[i]));
        const double scale = claim.kind == Kind::relative ? std::abs(exact) : 1.0;
        const double error = std::abs(static_cast<double>(out[i]) - exact) / scale;
        if (error > worst) worst = error, at = static_cast<double>(x[i]);
      }
      EXPECT_LE(worst, claim.error) << claim.name << " at " << at;
    });
  }
}

TEST(VectorMath, LimitsAreExact) {
  const float infinity = INFINITY;
  const float inputs[] = {0.0F, -infinity, NAN, -1000.0F};
  float out[4];
  on_every_instruction_set([&] {
    HWY_DYNAMIC_DISPATCH(Evaluate)(0, inputs, 4, out);
    EXPECT_EQ(out[0], 1.0F);
    EXPECT_EQ(out[1], std::exp2(-100.0F));
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], std::exp2(-100.0F));
    HWY_DYNAMIC_DISPATCH(Evaluate)(1, inputs, 4, out);
    EXPECT_EQ(out[0], 1.0F);
    EXPECT_EQ(out[1], 0.0F);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], 0.0F);
    HWY_DYNAMIC_DISPATCH(Evaluate)(6, inputs, 4, out);
    EXPECT_EQ(out[0], 0.0F);
    EXPECT_EQ(out[1], -1.0F);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], -1.0F);
  });
}

}  // namespace
}  // namespace heed::kernels
#endif  // HWY_ONCE
