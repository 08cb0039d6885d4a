// Products in f32, in bf16 and of prepared weights, against the reference on the very operands that
// they multiply.
#include <gtest/gtest.h>

#include "base/bf16.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"
#include "kernels/prepared_weight.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

Tensor<double> rounded(const Tensor<float>& values) {
  Tensor<double> result(values.shape());
  for (std::int64_t i = 0; i < values.size(); ++i) {
    result[i] = static_cast<double>(bf16_to_f32(f32_to_bf16(values[i])));
  }
  return result;
}

// Products of two bf16 are exact in f32, and a sum of n of them is off by at most n roundings of
// partial sums; rounding errors of random sign add up to about √n. AMX and AVX-512 BF16 add pairs
// in an order of their own and drop denormals, which these operands do not reach.
double tolerance(std::int64_t terms) {
  return 4.0 * std::sqrt(static_cast<double>(terms) + 1.0) * unit_roundoff;
}

struct ProductShape {
  std::int64_t rows, inputs, outputs;
};

const ProductShape product_shapes[] = {{1, 1, 1},      {3, 5, 7},     {14, 32, 32},  {16, 33, 65},
                                       {33, 31, 70},   {40, 130, 17}, {100, 64, 40}, {129, 300, 97},
                                       {17, 1100, 34}, {520, 40, 33}, {600, 70, 530}};

TEST(Bf16Products, MatchTheReferenceOnRoundedOperands) {
  on_every_instruction_set([&] {
    for (const ProductShape& shape : product_shapes) {
      SCOPED_TRACE(fmt::format("{} x {} x {}", shape.rows, shape.inputs, shape.outputs));
      const Twin x = random_twin(Shape{shape.rows, shape.inputs}, 1);
      const Twin weight = random_twin(Shape{shape.outputs, shape.inputs}, 2);
      const Twin bias = random_twin(Shape{shape.outputs}, 3);
      const Twin d_out = random_twin(Shape{shape.rows, shape.outputs}, 4);
      const Tensor<double> exact_x = rounded(x.single), exact_weight = rounded(weight.single);
      const Tensor<double> exact_d_out = rounded(d_out.single);

      Twin out(Shape{shape.rows, shape.outputs});
      linear_forward(x.single, {weight.single, bias.single, Precision::bf16}, out.single);
      reference::linear_forward<double>(exact_x, {exact_weight, bias.exact}, out.exact);
      EXPECT_LE(relative_error(out), tolerance(shape.inputs));

      Twin d_x(Shape{shape.rows, shape.inputs});
      linear_backward_input(weight.single, d_out.single, d_x.single, Precision::bf16);
      reference::linear_backward_input<double>(exact_weight, exact_d_out, d_x.exact);
      EXPECT_LE(relative_error(d_x), tolerance(shape.outputs));

      Twin d_weight = random_twin(Shape{shape.outputs, shape.inputs}, 5);
      linear_backward_parameters(x.single, d_out.single, {.weight = d_weight.single, .bias = {}},
                                 Precision::bf16);
      reference::linear_backward_parameters<double>(exact_x, exact_d_out,
                                                    {.weight = d_weight.exact, .bias = {}});
      EXPECT_LE(relative_error(d_weight), tolerance(shape.rows));
    }
  });
}

TEST(Bf16Products, LetInfinityAndNaNThrough) {
  on_every_instruction_set([&] {
    Tensor<float> x(Shape{20, 40}), weight(Shape{33, 40}), out(Shape{20, 33});
    x.fill(1.0F);
    weight.fill(1.0F);
    x[3 * 40 + 7] = std::numeric_limits<float>::quiet_NaN();
    x[5 * 40 + 1] = std::numeric_limits<float>::infinity();
    linear_forward(x, {.weight = weight, .bias = {}, .precision = Precision::bf16}, out);
    for (std::int64_t o = 0; o < 33; ++o) {
      EXPECT_EQ(out[2 * 33 + o], 40.0F);
      EXPECT_TRUE(std::isnan(out[3 * 33 + o]));
      EXPECT_TRUE(std::isinf(out[5 * 33 + o]));
    }
  });
}

TEST(F32Products, KeepDenormalsAndInfinity) {
  on_every_instruction_set([&] {
    constexpr std::int64_t rows = 70, inputs = 40,
                           outputs = 33;  // more rows than dot products take
    Tensor<float> x(Shape{rows, inputs}), weight(Shape{outputs, inputs}), out(Shape{rows, outputs});
    x.fill(0.0F);
    weight.fill(1.0F);
    x[3 * inputs + 7] = 1e-40F;
    x[5 * inputs + 1] = std::numeric_limits<float>::infinity();
    linear_forward(x, {.weight = weight, .bias = {}}, out);
    for (std::int64_t o = 0; o < outputs; ++o) {
      EXPECT_EQ(out[2 * outputs + o], 0.0F);
      EXPECT_EQ(out[3 * outputs + o], 1e-40F);
      EXPECT_EQ(out[5 * outputs + o], std::numeric_limits<float>::infinity());
    }
  });
}

// Magnitudes over 24 powers of ten, so that small products stand beside large ones. Every element
// is off by at most a rounding of each partial sum, and Σ |a·b| bounds all of those.
TEST(F32Products, ErrNoMoreThanARoundingForEachTerm) {
  on_every_instruction_set([&] {
    for (const ProductShape& shape : product_shapes) {
      SCOPED_TRACE(fmt::format("{} x {} x {}", shape.rows, shape.inputs, shape.outputs));
      Twin x = random_twin(Shape{shape.rows, shape.inputs}, 1);
      Twin weight = random_twin(Shape{shape.outputs, shape.inputs}, 2);
      RandomStream random(20, 3);
      for (Twin* twin : {&x, &weight}) {
        for (std::int64_t i = 0; i < twin->single.size(); ++i) {
          twin->single[i] *= static_cast<float>(std::pow(10.0, 12.0 * random.uniform() - 6.0));
          twin->exact[i] = static_cast<double>(twin->single[i]);
        }
      }
      Tensor<float> out(Shape{shape.rows, shape.outputs});
      linear_forward(x.single, {.weight = weight.single, .bias = {}}, out);
      for (std::int64_t r = 0; r < shape.rows; ++r) {
        for (std::int64_t o = 0; o < shape.outputs; ++o) {
          double sum = 0, magnitude = 0;
          for (std::int64_t i = 0; i < shape.inputs; ++i) {
            const double term = x.exact[r * shape.inputs + i] * weight.exact[o * shape.inputs + i];
            sum += term;
            magnitude += std::abs(term);
          }
          const double bound = static_cast<double>(shape.inputs + 1) * unit_roundoff * magnitude;
          ASSERT_LE(std::abs(static_cast<double>(out[r * shape.outputs + o]) - sum), bound);
        }
      }
    }
  });
}

// However a product is put together, a number times one and zeros is that number, with all its
// bits.
TEST(F32Products, KeepEveryBitOfWhatIsMultipliedByOne) {
  on_every_instruction_set([&] {
    const std::int64_t size = 70, rows = 37;
    const Twin x = random_twin(Shape{rows, size}, 6);
    Tensor<float> identity(Shape{size, size}), out(Shape{rows, size}), back(Shape{size, rows});
    identity.fill(0.0F);
    for (std::int64_t i = 0; i < size; ++i) identity[i * size + i] = 1.0F;
    linear_forward(x.single, {.weight = identity, .bias = {}}, out);
    for (std::int64_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], x.single[i]);
    linear_forward(identity, {.weight = x.single, .bias = {}}, back);
    for (std::int64_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(back[i % size * rows + i / size], x.single[i]);
    }
  });
}

TEST(F32Products, LetWhatIsNotFiniteShow) {
  on_every_instruction_set([&] {
    Tensor<float> x(Shape{40, 40}), weight(Shape{33, 40}), out(Shape{40, 33});
    x.fill(1.0F);
    weight.fill(1.0F);
    x[3 * 40 + 7] = std::numeric_limits<float>::quiet_NaN();
    x[5 * 40 + 1] = std::numeric_limits<float>::infinity();
    linear_forward(x, {.weight = weight, .bias = {}}, out);
    for (std::int64_t o = 0; o < 33; ++o) {
      EXPECT_EQ(out[2 * 33 + o], 40.0F);
      EXPECT_FALSE(std::isfinite(out[3 * 33 + o]));
      EXPECT_FALSE(std::isfinite(out[5 * 33 + o]));
    }
  });
}

TEST(PreparedBf16, HoldsTheRoundedWeights) {
  for (const ProductShape& shape : product_shapes) {
    const Twin weight = random_twin(Shape{shape.outputs, shape.inputs}, 2);
    const PreparedWeight prepared(weight.single, WeightFormat::bf16);
    const Tensor<double> expected = rounded(weight.single);
    const Tensor<float> restored = prepared.restored();
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(static_cast<double>(restored[i]), expected[i]);
    }
  }
}

// Where a machine has no products of bf16, x is not rounded; devices have them.
TEST(PreparedBf16, MultipliesAsTheReferenceDoes) {
  on_every_instruction_set([&] {
    const bool rounds_x = tests_device() || current_instruction_set().ends_with("BF16");
    for (const ProductShape& shape : product_shapes) {
      SCOPED_TRACE(fmt::format("{} x {} x {}", shape.rows, shape.inputs, shape.outputs));
      const Twin x = random_twin(Shape{shape.rows, shape.inputs}, 1);
      const Twin weight = random_twin(Shape{shape.outputs, shape.inputs}, 2);
      const Twin bias = random_twin(Shape{shape.outputs}, 3);
      const PreparedWeight prepared(weight.single, WeightFormat::bf16);
      Twin out(Shape{shape.rows, shape.outputs});
      prepared_linear_forward(x.single, prepared, bias.single, out.single);
      const Tensor<double> exact_weight = rounded(weight.single), rounded_x = rounded(x.single);
      reference::linear_forward<double>(rounds_x ? rounded_x : x.exact, {exact_weight, bias.exact},
                                        out.exact);
      EXPECT_LE(relative_error(out), tolerance(shape.inputs));
    }
  });
}

TEST(PreparedBf16, RowsDoNotDependOnEachOther) {
  const std::int64_t most = 40, inputs = 1100, outputs = 137;
  const Twin x = random_twin(Shape{most, inputs}, 1);
  const Twin weight = random_twin(Shape{outputs, inputs}, 2);
  const Twin bias = random_twin(Shape{outputs}, 3);
  const PreparedWeight prepared(weight.single, WeightFormat::bf16);
  on_every_instruction_set([&] {
    Tensor<float> together(Shape{most, outputs});
    prepared_linear_forward(x.single, prepared, bias.single, together);
    for (const std::int64_t count : {1, 2, 3, 4, 5, 8}) {
      Tensor<float> some(Shape{count, outputs});
      for (std::int64_t row = 0; row + count <= most; row += count) {
        const auto rows = x.single.view().slice(0, row, row + count);
        prepared_linear_forward(rows, prepared, bias.single, some);
        for (std::int64_t i = 0; i < some.size(); ++i) {
          ASSERT_EQ(some[i], together[row * outputs + i]) << count << " rows from " << row;
        }
      }
    }
  });
}

TEST(PackedWeights, ChangeNoBit) {
  on_every_instruction_set([&] {
    for (const ProductShape& shape : product_shapes) {
      SCOPED_TRACE(fmt::format("{} x {} x {}", shape.rows, shape.inputs, shape.outputs));
      const Twin x = random_twin(Shape{shape.rows, shape.inputs}, 1);
      const Twin weight = random_twin(Shape{shape.outputs, shape.inputs}, 2);
      const Twin bias = random_twin(Shape{shape.outputs}, 3);
      const PackedWeight packed(weight.single);
      LinearParameters<float> linear{.weight = weight.single, .bias = bias.single};
      Tensor<float> plain(Shape{shape.rows, shape.outputs}), out(plain.shape());
      linear_forward(x.single, linear, plain);
      linear.packed = &packed;
      linear_forward(x.single, linear, out);
      for (std::int64_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], plain[i]) << i;
    }
  });
}

TEST(PackedWeights, AreReadWhereTheyArePacked) {
  const std::int64_t rows = 70, inputs = 900, outputs = 100;
  const Twin x = random_twin(Shape{rows, inputs}, 1);
  Twin weight = random_twin(Shape{outputs, inputs}, 2);
  const PackedWeight packed(weight.single);
  const LinearParameters<float> linear{.weight = weight.single, .packed = &packed};
  Tensor<float> before(Shape{rows, outputs}), after(before.shape());
  linear_forward(x.single, linear, before);
  weight.single.fill(0.0F);
  linear_forward(x.single, linear, after);
  for (std::int64_t i = 0; i < after.size(); ++i) ASSERT_EQ(after[i], before[i]) << i;
  // Another instruction set reads the weights themselves.
  on_every_instruction_set([&] {
    if (current_instruction_set() != "SSE4") return;
    linear_forward(x.single, linear, after);
    for (std::int64_t i = 0; i < after.size(); ++i) ASSERT_EQ(after[i], 0.0F) << i;
  });
}

TEST(MultipliedRow, IsReadWhereTheWeightLies) {
  const Twin weight = random_twin(Shape{7, 33}, 2);
  on_every_instruction_set([&] {
    Tensor<float> there(weight.single.shape(), opened_device());
    copy_bytes(there.data(), weight.single.data(), weight.single.span().size_bytes());
    const LinearParameters<float> linear{.weight = std::as_const(there).view()};
    const MultipliedWeight multiplied(linear);
    EXPECT_EQ(multiplied.view().data(), there.data());
    for (const std::int64_t output : {0, 3, 6}) {
      const std::vector<float> row = multiplied_row(linear, output);
      ASSERT_EQ(row.size(), 33);
      EXPECT_TRUE(std::equal(row.begin(), row.end(), weight.single.data() + output * 33));
    }
  });
}

TEST(PreparedWeights, RefuseWhatCannotBe) {
  Tensor<float> weight(Shape{2, 3});
  EXPECT_THROW(PreparedWeight(weight, WeightFormat::f32), Error);
  weight[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(PreparedWeight(weight, WeightFormat::bf16), Error);
  weight[4] = 0.0F;
  const PreparedWeight prepared(weight, WeightFormat::bf16);
  Tensor<float> x(Shape{4, 2}), out(Shape{4, 2});
  EXPECT_THROW(prepared_linear_forward(x, prepared, {}, out), Error);
}

}  // namespace
}  // namespace heed::kernels
