// Products of f32 on a device, in f32 and in TF32.
#include "heed/f32_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"
#include "cli/run_heed.h"
#include "device/training_runs.h"
#include "heed/heed.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"
#include "model/comparison.h"
#include "tensor/device.h"

namespace heed {
namespace {

using kernels::LinearParameters;
using kernels::Precision;
using kernels::relative_error;
using testing::expect_error;

// The rounding of one operand to TF32: half a unit of the last of 10 bits.
constexpr double tf32_rounding = 1.0 / (1 << 11);

// A process's choice, until the end of a scope.
struct ChosenProducts {
  explicit ChosenProducts(F32Products products) { set_f32_products(products); }
  ~ChosenProducts() { set_f32_products(F32Products::f32); }
};

TEST(F32ProductsChoice, IsF32UnlessItIsTf32) {
  EXPECT_EQ(f32_products(), F32Products::f32);
  {
    const ChosenProducts chosen(parse_f32_products("tf32"));
    EXPECT_EQ(f32_products(), F32Products::tf32);
    EXPECT_STREQ(f32_products_name(f32_products()), "tf32");
  }
  EXPECT_EQ(f32_products(), parse_f32_products("f32"));
  for (const char* name : {"", "TF32", "bf16", "f32 "}) {
    expect_error(
        ErrorCode::invalid_argument, [&] { parse_f32_products(name); }, "expected f32 or tf32");
  }
}

// Numbers of TF32, and the same with further bits, less than half a unit of TF32's last one:
// rounded to nearest or cut off, as a device may do, they are the former.
struct Tf32Operands {
  Tensor<float> single;
  Tensor<double> exact, rounded;

  Tf32Operands(const Shape& shape, std::uint64_t stream)
      : single(shape), exact(shape), rounded(shape) {
    RandomStream random(20, stream);
    for (std::int64_t i = 0; i < single.size(); ++i) {
      const auto number = static_cast<float>(random.normal());
      std::uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      bits &= ~0x1fffU;
      rounded[i] = double{float_of(bits)};
      single[i] = float_of(bits + static_cast<std::uint32_t>(0xfff * random.uniform()));
      exact[i] = double{single[i]};
    }
  }

  static float float_of(std::uint32_t bits) {
    float number = 0;
    std::memcpy(&number, &bits, sizeof number);
    return number;
  }
};

class DeviceProducts : public ::testing::Test {
 protected:
  DeviceProducts() { kernels::compute_on(open_device("cuda")); }
  ~DeviceProducts() override { kernels::compute_on(Device{}); }

  // What both ways to multiply give: `multiply` computes in f32, `refer` in f64, of exact or of
  // rounded operands.
  template <class Multiply, class Refer>
  static void expect_rounded_operands(const Shape& shape, std::int64_t terms,
                                      const Multiply& multiply, const Refer& refer) {
    // Sums of f32 whose additions may cut off, as those of tensor cores do.
    const double tolerance = 8 * std::sqrt(static_cast<double>(terms)) * kernels::unit_roundoff;
    Tensor<double> of_exact(shape), of_rounded(shape);
    refer(&Tf32Operands::exact, of_exact);
    refer(&Tf32Operands::rounded, of_rounded);
    ASSERT_GT(relative_error(of_rounded, of_exact), 20 * tolerance);  // tells one from the other
    Tensor<float> found(shape);
    multiply(found);
    EXPECT_LE(relative_error(found, of_exact), tolerance);
    const ChosenProducts chosen(F32Products::tf32);
    multiply(found);
    EXPECT_LE(relative_error(found, of_rounded), tolerance);
  }
};

using Exactness = Tensor<double> Tf32Operands::*;

TEST_F(DeviceProducts, InTf32RoundWhatTheyMultiplyAndNothingElse) {
  struct {
    std::int64_t rows, inputs, outputs;
  } const sizes[] = {{40, 64, 48}, {132, 36, 72}};  // whose rows tensor cores load at once
  for (const auto& size : sizes) {
    const Shape outputs{size.rows, size.outputs}, inputs{size.rows, size.inputs};
    const Shape weights{size.outputs, size.inputs};
    const Tf32Operands x(inputs, 1), weight(weights, 2), d_out(outputs, 3);
    const kernels::Twin bias = kernels::random_twin(Shape{size.outputs}, 4);
    const kernels::Twin before = kernels::random_twin(weights, 5);
    const auto set = [](const auto& from, auto& to) {
      for (std::int64_t i = 0; i < from.size(); ++i) to[i] = from[i];
    };
    {
      SCOPED_TRACE("forward");
      expect_rounded_operands(
          outputs, size.inputs,
          [&](Tensor<float>& out) {
            kernels::linear_forward(x.single, {.weight = weight.single, .bias = bias.single}, out);
          },
          [&](Exactness of, Tensor<double>& out) {
            kernels::reference::linear_forward<double>(
                x.*of, {.weight = weight.*of, .bias = bias.exact}, out);
          });
    }
    {
      SCOPED_TRACE("gradients of what was multiplied");
      expect_rounded_operands(
          inputs, size.outputs,
          [&](Tensor<float>& d_x) {
            kernels::linear_backward_input(weight.single, d_out.single, d_x);
          },
          [&](Exactness of, Tensor<double>& d_x) {
            kernels::reference::linear_backward_input<double>(weight.*of, d_out.*of, d_x);
          });
    }
    {
      SCOPED_TRACE("gradients of the weight");
      expect_rounded_operands(
          weights, size.rows,
          [&](Tensor<float>& d_weight) {
            set(before.single, d_weight);
            kernels::linear_backward_parameters(x.single, d_out.single,
                                                {.weight = d_weight, .bias = {}});
          },
          [&](Exactness of, Tensor<double>& d_weight) {
            set(before.exact, d_weight);
            kernels::reference::linear_backward_parameters<double>(
                x.*of, d_out.*of, {.weight = d_weight, .bias = {}});
          });
    }
  }
}

// Whatever is chosen: products of a few rows, in bf16, in integers, and all of the processor.
TEST_F(DeviceProducts, OfOtherKindsAreTheSameInTf32) {
  const std::int64_t rows = 40, inputs = 64, outputs = 48;
  const Tf32Operands x(Shape{rows, inputs}, 1), weight(Shape{outputs, inputs}, 2);
  const kernels::PreparedWeight bytes(weight.single, kernels::WeightFormat::int8);
  const auto product = [&](Precision precision, std::int64_t positions) {
    Tensor<float> out(Shape{rows, outputs});
    kernels::linear_forward(x.single, {.weight = weight.single, .bias = {}, .precision = precision},
                            out, positions);
    return out;
  };
  const auto of_bytes = [&] {
    Tensor<float> out(Shape{rows, outputs});
    kernels::prepared_linear_forward(x.single, bytes, {}, out);
    return out;
  };
  const auto on_the_processor = [&] {
    kernels::compute_on(Device{});
    Tensor<float> out = product(Precision::f32, 0);
    kernels::compute_on(open_device("cuda"));
    return out;
  };
  const auto all = [&] {
    std::vector<Tensor<float>> found;
    found.push_back(product(Precision::f32, 32));
    found.push_back(product(Precision::bf16, 0));
    found.push_back(of_bytes());
    found.push_back(on_the_processor());
    return found;
  };
  const auto f32 = all();
  const Tensor<float> long_rows = product(Precision::f32, 33);
  kernels::refuse_integers_for_long_rows();
  const Tensor<float> unpacked = of_bytes();
  const ChosenProducts chosen(F32Products::tf32);
  const Tensor<float> unpacked_in_tf32 = of_bytes();
  kernels::allow_integers_for_long_rows();
  const auto tf32 = all();
  for (std::size_t i = 0; i < f32.size(); ++i) EXPECT_EQ(relative_error(tf32[i], f32[i]), 0) << i;
  // Where integers are refused, a prompt is a product of f32 like others.
  const double bound = 2 * tf32_rounding;
  for (const double change : {relative_error(product(Precision::f32, 33), long_rows),
                              relative_error(unpacked_in_tf32, unpacked)}) {
    EXPECT_GT(change, 1e-5);
    EXPECT_LE(change, bound);
  }
}

constexpr const char* long_text =
    "Harry met the wizard in the tower, and the fluffy blue creature slept while the queen of the "
    "mountain read an old book about a garden where the trees could sing, and then the wizard said "
    "that it was late and that all of them should go home before the rain began";

// A product errs by its operands' two roundings at most, and the residual stream adds up errors
// that are random. In bf16 they are eight times as large.
TEST(ModelsInTf32, ComputeWhatModelsInF32Do) {
  const Model here = Model::load("starter", {.device = "cpu"});
  const Model there = Model::load("starter", {.device = "cuda"});
  const std::vector<std::int32_t> tokens = here.encode(long_text);
  ASSERT_GT(tokens.size(), 32U);
  const std::vector<std::int32_t> few(tokens.begin(), tokens.begin() + 20);
  const auto change = [](const Array& actual, const Array& expected) {
    return testing::relative_error(std::span(actual.data(), actual.size()),
                                   std::span(expected.data(), expected.size()));
  };
  const Array expected = here.all_logits(tokens);
  const Array long_f32 = there.all_logits(tokens), few_f32 = there.all_logits(few);
  const ChosenProducts chosen(F32Products::tf32);
  const Array long_tf32 = there.all_logits(tokens), few_tf32 = there.all_logits(few);
  EXPECT_LE(change(long_f32, expected), 2e-5);
  EXPECT_LE(change(long_tf32, expected), 2 * tf32_rounding);
  EXPECT_GT(change(long_tf32, expected), 1e-4);
  EXPECT_EQ(change(few_tf32, few_f32), 0);
  EXPECT_EQ(change(here.all_logits(tokens), expected), 0);
}

class TrainingInTf32 : public testing::TrainingRuns {
 protected:
  TrainingInTf32() : TrainingRuns(60, {{"context", "40"}}) {}

  std::vector<double> losses(const std::string& device, F32Products products,
                             const std::string& run, int steps) {
    const ChosenProducts chosen(products);
    return TrainingRuns::losses(device, run, steps);
  }
};

// Rounding changes losses by far less than steps do. What is written says nothing of it: names,
// types, shapes and settings are those of f32, and a run goes on in f32, on the processor too.
TEST_F(TrainingInTf32, FollowsF32AndLeavesTheSameFiles) {
  const std::vector<double> f32 = losses("cuda", F32Products::f32, "f32", 6);
  const std::vector<double> tf32 = losses("cuda", F32Products::tf32, "tf32", 6);
  ASSERT_EQ(f32.size(), 6U);
  ASSERT_EQ(tf32.size(), f32.size());
  EXPECT_GT(f32.front() - f32.back(), 0.3);
  double most = 0;
  for (std::size_t i = 0; i < f32.size(); ++i) {
    EXPECT_NEAR(tf32[i], f32[i], 1e-4) << i;
    most = std::max(most, std::abs(tf32[i] - f32[i]));
  }
  EXPECT_GT(most, 1e-6);

  const auto file = [&](const char* run, const char* name) { return directory_ / run / name; };
  EXPECT_EQ(read_text_file(file("f32", "last/config.json")),
            read_text_file(file("tf32", "last/config.json")));
  const auto of_f32 = SafetensorsFile::open(file("f32", "last/model.safetensors"));
  const auto of_tf32 = SafetensorsFile::open(file("tf32", "last/model.safetensors"));
  ASSERT_EQ(of_f32.tensors().size(), of_tf32.tensors().size());
  for (std::size_t i = 0; i < of_f32.tensors().size(); ++i) {
    const TensorEntry& one = of_f32.tensors()[i];
    const TensorEntry& other = of_tf32.tensors()[i];
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.shape, other.shape);
    EXPECT_EQ(one.dtype, other.dtype);
  }
  const std::vector<double> resumed = losses("cpu", F32Products::f32, "tf32", 12);
  const std::vector<double> straight = losses("cpu", F32Products::f32, "f32", 12);
  ASSERT_EQ(resumed.size(), straight.size());
  for (std::size_t i = 0; i < resumed.size(); ++i) EXPECT_NEAR(resumed[i], straight[i], 2e-4) << i;
}

// The option and the environment variable say the same, and the option prevails.
TEST(CommandsInTf32, MultiplyAsTheyAreTold) {
  const std::string library =
      "HEED_CUDA_LIBRARY=" + std::string(std::getenv("HEED_CUDA_LIBRARY")) + " ";
  const auto logits = [&](const std::string& options, const std::string& before = "") {
    const auto found = testing::run_heed(
        "predict --json --full '" + std::string(long_text) + "' " + options, library + before);
    EXPECT_EQ(found.status, 0) << options << found.err;
    return found.out;
  };
  const std::string f32 = logits("--device cuda");
  const std::string tf32 = logits("--device cuda --f32-products tf32");
  EXPECT_TRUE(tf32 != f32);
  EXPECT_TRUE(logits("--device cuda", "HEED_F32_PRODUCTS=tf32") == tf32);
  EXPECT_TRUE(logits("--device cuda --f32-products f32", "HEED_F32_PRODUCTS=tf32") == f32);
  EXPECT_TRUE(logits("--f32-products tf32") == logits(""));

  const auto report = testing::run_heed(
      "bench attention -c 16 --config shakespeare-char-cpu --repeats 1 --device cuda "
      "--f32-products tf32",
      library);
  EXPECT_NE(report.out.find("f32 products in TF32"), std::string::npos) << report.out;
}

}  // namespace
}  // namespace heed
