// Weights in integers of eight and four bits: what rounding costs, and products to the integer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/bf16.h"
#include "kernels/cpu/prepared_formats.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

constexpr std::int64_t width = PreparedWeight::panel_outputs;
constexpr std::int64_t group = PreparedWeight::group;
constexpr float smallest_normal = std::numeric_limits<float>::min();

struct Format {
  const char* name;
  PreparedFormat (*functions)();
  int largest;  // of the integers' magnitudes
  int bits;
};

constexpr Format formats[] = {{"int8", &int8_format, 127, 8}, {"int4", &int4_format, 7, 4}};

struct Size {
  std::int64_t inputs, outputs;
};

constexpr Size sizes[] = {{1, 1}, {1, 32}, {31, 5}, {32, 32}, {33, 5}, {100, 31}, {768, 32}};

std::int64_t padded(std::int64_t inputs) { return (inputs + group - 1) / group * group; }

// A panel of random weights, and x for any number of rows. Groups of weights and of x are random in
// size too, some zero.
struct QuantisedPanel {
  QuantisedPanel(const Format& kind, const Size& size, std::int64_t max_rows)
      : format(kind),
        functions(kind.functions()),
        shape{.inputs = size.inputs, .padded_inputs = padded(size.inputs)},
        outputs(size.outputs),
        rows(max_rows),
        weight(Shape{size.outputs, size.inputs}),
        x(Shape{max_rows, size.inputs}),
        panel(Shape{functions.panel_bytes(shape)}),
        scales(Shape{functions.scale_bytes(shape)}) {
    randomise(weight, 1);
    randomise(x, 2);
    write();
  }

  void randomise(Tensor<float>& values, std::uint64_t stream) const {
    RandomStream random(40, stream);
    double deviation = 1.0;
    for (std::int64_t i = 0; i < values.size(); ++i) {
      if (i % shape.inputs % group == 0) {
        const std::uint64_t kind = random.below(5);
        deviation = kind == 0 ? 0.0 : std::exp(random.normal());
      }
      values[i] = static_cast<float>(deviation * random.normal());
    }
  }

  void write() {
    panel.fill(std::byte{0});
    scales.fill(std::byte{0});
    functions.write_panel(weight.data(), shape.inputs, outputs, shape,
                          {.panel = panel.data(), .scales = scales.data()});
  }

  PanelRun run() const { return {.first = panel.data(), .scales = scales.data(), .count = 1}; }

  // The panel in f32, (padded_inputs, 32).
  Tensor<float> restored() const {
    Tensor<float> values(Shape{shape.padded_inputs, width});
    functions.read_panel(run(), shape, 0, shape.padded_inputs, {.to = values.data()});
    return values;
  }

  // (count, 32), of x from the given row on, by the functions of the set in use.
  std::vector<float> product(std::int64_t first, std::int64_t count) const {
    const PreparedFormat now = format.functions();
    std::vector<float> prepared(static_cast<std::size_t>(now.prepared_rows_size(count, shape)));
    now.prepare_rows(x.data() + first * shape.inputs, count, shape, prepared.data());
    std::vector<float> sums(static_cast<std::size_t>(count * width), 0.0F);
    now.multiply_panels(prepared.data(), count, run(), shape, sums.data());
    return sums;
  }

  // The integer at (input, output) and its scale, by the layout that prepared_weight.h states.
  int integer(std::int64_t input, std::int64_t output) const {
    if (format.bits == 8) {
      return static_cast<int>(panel[(input / 4 * width + output) * 4 + input % 4]) - 128;
    }
    const int byte = static_cast<int>(panel[(input / 8 * width + output) * 4 + input % 4]);
    return (input % 8 < 4 ? byte & 15 : byte >> 4) - 8;
  }
  float scale(std::int64_t input, std::int64_t output) const {
    std::uint16_t bits;
    std::memcpy(&bits, scales.data() + (input / group * width + output) * sizeof(bits),
                sizeof(bits));
    return bf16_to_f32(bits);
  }

  Format format;
  PreparedFormat functions;
  PanelShape shape;
  std::int64_t outputs;
  std::int64_t rows;
  Tensor<float> weight;  // (outputs, inputs)
  Tensor<float> x;       // (rows, inputs)
  Tensor<std::byte> panel;
  Tensor<std::byte> scales;
};

template <class Body>
void for_every_case(std::int64_t rows, Body&& body) {
  for (const Format& format : formats) {
    for (const Size& size : sizes) {
      SCOPED_TRACE(fmt::format("{} {}x{}", format.name, size.outputs, size.inputs));
      QuantisedPanel one(format, size, rows);
      body(one);
    }
  }
}

// The numbers of a group of a row of x, as integers and a scale.
struct RoundedGroup {
  float scale = 0.0F;
  int integers[group] = {};

  RoundedGroup(const float* x, std::int64_t count) {
    float largest = 0.0F;
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
    if (largest == 0.0F) return;
    scale = std::max(largest / 127.0F, smallest_normal);
    const float inverse = 1.0F / scale;
    for (std::int64_t i = 0; i < count; ++i) {
      integers[i] = static_cast<int>(std::nearbyint(x[i] * inverse));
    }
  }
};

TEST(Quantised, PanelsHoldTheWeightsAsLaidOut) {
  for_every_case(1, [](const QuantisedPanel& one) {
    const std::int64_t padded_inputs = one.shape.padded_inputs;
    EXPECT_EQ(one.panel.size(), padded_inputs * width * one.format.bits / 8);
    EXPECT_EQ(one.scales.size(), padded_inputs * 2);
    on_every_instruction_set([&] {
      const Tensor<float> values = one.restored();
      for (std::int64_t i = 0; i < padded_inputs; ++i) {
        for (std::int64_t o = 0; o < width; ++o) {
          ASSERT_LE(std::abs(one.integer(i, o)), one.format.largest);
          // exact: 7 bits of the integer and 8 of the scale fit into 24
          ASSERT_EQ(values[i * width + o], static_cast<float>(one.integer(i, o)) * one.scale(i, o));
          if (i >= one.shape.inputs || o >= one.outputs) {
            ASSERT_EQ(values[i * width + o], 0.0F);
          }
        }
      }
    });
  });
}

TEST(Quantised, WeightsHoldPanelsAndBehindThemTheScales) {
  for (const Format& format : formats) {
    const QuantisedPanel one(format, {96, 32}, 1);
    constexpr std::int64_t outputs = 70, last = outputs / width;  // two panels and 6 outputs
    Tensor<float> weight(Shape{outputs, one.shape.inputs});
    for (std::int64_t i = 0; i < weight.size(); ++i) weight[i] = one.weight[i % one.weight.size()];
    const PreparedWeight prepared(weight, parse_weight_format(format.name));
    const auto is_at = [](const Tensor<std::byte>& expected, const std::byte* actual) {
      return std::equal(expected.data(), expected.data() + expected.size(), actual);
    };
    for (std::int64_t index = 0; index < last; ++index) {
      EXPECT_TRUE(is_at(one.panel, prepared.panel(index))) << format.name << ' ' << index;
      EXPECT_TRUE(is_at(one.scales, prepared.scales(index))) << format.name << ' ' << index;
    }
    EXPECT_EQ(prepared.scales(0), prepared.panel(last + 1));
    EXPECT_EQ(prepared.bytes(), (last + 1) * (one.panel.size() + one.scales.size()));
    const Tensor<float> restored = prepared.restored();
    const Tensor<float> values = one.restored();
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < one.shape.inputs; ++i) {
        ASSERT_EQ(restored[o * one.shape.inputs + i], values[i * width + o % width]);
      }
    }
  }
}

TEST(Quantised, PartsOfPanelsReadAsInTheWhole) {
  for (const Format& format : formats) {
    const QuantisedPanel one(format, {768, 32}, 1);
    on_every_instruction_set([&] {
      const Tensor<float> whole = one.restored();
      std::vector<float> part(64 * width);
      one.functions.read_panel(one.run(), one.shape, 96, 64, {.to = part.data()});
      EXPECT_EQ(0, std::memcmp(part.data(), whole.data() + 96 * width, part.size() * sizeof(float)))
          << format.name;
    });
  }
}

// As matrix products want them: panels of fewer outputs, one after the other.
TEST(Quantised, PanelsAreReadSideBySide) {
  for (const Format& format : formats) {
    const QuantisedPanel one(format, {96, 32}, 1);
    on_every_instruction_set([&] {
      const Tensor<float> whole = one.restored();
      const std::int64_t columns = std::min(f32_product_kernels().columns, width),
                         stride = 96 * columns;
      std::vector<float> parts(96 * width);
      one.functions.read_panel(one.run(), one.shape, 0, 96,
                               {.to = parts.data(), .columns = columns, .stride = stride});
      for (std::int64_t i = 0; i < 96; ++i) {
        for (std::int64_t o = 0; o < width; ++o) {
          ASSERT_EQ(parts[o / columns * stride + i * columns + o % columns], whole[i * width + o])
              << format.name << " input " << i << " output " << o;
        }
      }
    });
  }
}

TEST(Quantised, WeightsMoveByHalfAScaleAtMost) {
  for_every_case(1, [](const QuantisedPanel& one) {
    const Tensor<float> values = one.restored();
    for (std::int64_t o = 0; o < one.outputs; ++o) {
      for (std::int64_t first = 0; first < one.shape.inputs; first += group) {
        const std::int64_t end = std::min(first + group, one.shape.inputs);
        float largest = 0.0F;
        for (std::int64_t i = first; i < end; ++i) {
          largest = std::max(largest, std::abs(one.weight[o * one.shape.inputs + i]));
        }
        const double scale = static_cast<double>(one.scale(first, o));
        const double exact = static_cast<double>(largest) / one.format.largest;
        // rounding to bf16, which has 8 bits; the division's own rounding comes on top
        EXPECT_LE(std::abs(scale - exact), exact * (1.0 / 256 + unit_roundoff));
        for (std::int64_t i = first; i < end; ++i) {
          const double before = static_cast<double>(one.weight[o * one.shape.inputs + i]);
          const double after = static_cast<double>(values[i * width + o]);
          // a quotient near a half may have been rounded to it, by at most 128·2^-24 of a scale
          ASSERT_LE(std::abs(after - before), scale * (0.5 + 128 * unit_roundoff));
        }
      }
    }
  });
}

TEST(Quantised, TinyAndHugeGroupsKeepTheBound) {
  for (const Format& format : formats) {
    for (const float size : {1e-45F, 1e-41F, 1e-38F, 1e-36F, 1e38F, 3e38F}) {
      QuantisedPanel one(format, {32, 2}, 1);
      for (std::int64_t i = 0; i < one.weight.size(); ++i) {
        one.weight[i] = size * (static_cast<float>(i % 32 - 16) / 16.0F);
      }
      one.write();
      const Tensor<float> values = one.restored();
      for (std::int64_t i = 0; i < 32; ++i) {
        const double before = static_cast<double>(one.weight[i]);
        const double after = static_cast<double>(values[i * width]);
        EXPECT_LE(std::abs(after - before),
                  static_cast<double>(one.scale(0, 0)) * (0.5 + 128 * unit_roundoff))
            << format.name << " " << size;
      }
    }
  }
}

// Σ over groups of (integer dot product, exact)·(scale·scale): a product of scales and each
// addition of n groups round once or, without fused multiply-adds, twice. Errors add up to (n +
// 2)·2^-24 of the sum of the terms' magnitudes.
TEST(Quantised, ProductsAreThoseOfTheIntegers) {
  constexpr std::int64_t rows = 7;
  for_every_case(rows, [&](const QuantisedPanel& one) {
    const std::int64_t inputs = one.shape.inputs;
    const double bound = static_cast<double>(one.shape.padded_inputs / group + 2) * unit_roundoff;
    on_every_instruction_set([&] {
      const std::vector<float> sums = one.product(0, rows);
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t o = 0; o < width; ++o) {
          double sum = 0.0, magnitude = 0.0;
          for (std::int64_t first = 0; first < inputs; first += group) {
            const std::int64_t count = std::min(group, inputs - first);
            const RoundedGroup x(one.x.data() + row * inputs + first, count);
            int dot = 0;
            for (std::int64_t i = 0; i < count; ++i) {
              dot += x.integers[i] * one.integer(first + i, o);
            }
            const double term = static_cast<double>(dot) * static_cast<double>(x.scale) *
                                static_cast<double>(one.scale(first, o));
            sum += term;
            magnitude += std::abs(term);
          }
          const double actual =
              static_cast<double>(sums[static_cast<std::size_t>(row * width + o)]);
          ASSERT_LE(std::abs(actual - sum), bound * magnitude) << "row " << row << " output " << o;
          if (o >= one.outputs) {
            ASSERT_EQ(actual, 0.0);
          }
        }
      }
    });
  });
}

// Sums of a group are exact, and all sets with fused multiply-adds scale and add them alike.
TEST(Quantised, DotProductsOfBytesChangeNoBit) {
  constexpr std::int64_t rows = 7;
  for_every_case(rows, [&](const QuantisedPanel& one) {
    std::vector<float> first;
    on_every_instruction_set([&] {
      const std::string set = current_instruction_set();
      if (!set.starts_with("NEON") && !set.starts_with("AVX")) return;
      const std::vector<float> sums = one.product(0, rows);
      if (first.empty()) first = sums;
      EXPECT_EQ(0, std::memcmp(sums.data(), first.data(), sums.size() * sizeof(float)));
    });
  });
}

// The extremes of all integers: sums of 32 products fit the instructions' accumulators.
TEST(Quantised, LargestIntegersDoNotSaturate) {
  for (const Format& format : formats) {
    for (const float sign : {1.0F, -1.0F}) {
      QuantisedPanel one(format, {64, 32}, 1);
      one.weight.fill(sign);
      one.x.fill(1.0F);
      one.write();
      on_every_instruction_set([&] {
        // scales of 1/127 or 1/7 in bf16 (2^-8) and of 1/127 in f32
        EXPECT_NEAR(sign * one.product(0, 1)[5], 64.0F, 64.0F / 256) << format.name;
      });
    }
  }
}

TEST(Quantised, RowsDoNotDependOnTheirNumber) {
  constexpr std::int64_t rows = 21;
  for_every_case(rows, [&](const QuantisedPanel& one) {
    on_every_instruction_set([&] {
      const std::vector<float> together = one.product(0, rows);
      for (const std::int64_t count : {1, 2, 3, 4, 5, 6, 7, 11, 16}) {
        for (std::int64_t first = 0; first + count <= rows; first += count) {
          const std::vector<float> some = one.product(first, count);
          ASSERT_EQ(0, std::memcmp(some.data(), together.data() + first * width,
                                   some.size() * sizeof(float)))
              << count << " rows from " << first;
        }
      }
    });
  });
}

// What rounding x to int8 in groups moves an output by at most, and what rounding it to bf16 does.
double largest_error(View<const float> x, View<const float> weight, std::int64_t row,
                     std::int64_t output) {
  constexpr double bf16_rounding = 0x1p-8, slack = 1e-5;
  double of_integers = 0.0, of_bf16 = 0.0;
  for (std::int64_t first = 0; first < x.extent(1); first += group) {
    double largest = 0.0, weights = 0.0;
    for (std::int64_t i = first; i < std::min(first + group, x.extent(1)); ++i) {
      const double value = std::abs(x(row, i)), factor = std::abs(weight(output, i));
      largest = std::max(largest, value);
      weights += factor;
      of_bf16 += bf16_rounding * value * factor;
    }
    of_integers += largest / 254.0 * weights;
  }
  return std::max(of_integers, of_bf16) + slack;
}

TEST(Quantised, LongSequencesAreMultipliedInIntegersOnlyWhereTheyMayBe) {
  constexpr std::int64_t rows = 131, inputs = 100, outputs = 40;
  Tensor<float> x(Shape{rows, inputs}), weight(Shape{outputs, inputs});
  RandomStream random(7, 1);
  for (float& value : x.span()) value = static_cast<float>(random.normal());
  for (float& value : weight.span()) value = static_cast<float>(random.normal());
  for (const Format& format : formats) {
    const WeightFormat type = parse_weight_format(format.name);
    const PreparedWeight prepared(weight, type);
    const Tensor<float> restored = prepared.restored();
    on_every_instruction_set([&] {
      const auto product = [&](std::int64_t positions) {
        Tensor<float> out(Shape{rows, outputs});
        prepared_linear_forward(x, prepared, {}, out, positions);
        return out;
      };
      const auto equal = [](const Tensor<float>& a, const Tensor<float>& b) {
        return std::memcmp(a.data(), b.data(), a.span().size_bytes()) == 0;
      };
      const bool in_integers = !tests_device() && multiplies_long_rows_in_integers(type);
      const bool in_bf16 = tests_device() || has_bf16_products();
      const Tensor<float> of_short = product(1), of_long = product(rows);
      refuse_integers_for_long_rows();
      EXPECT_FALSE(multiplies_long_rows_in_integers(type));
      const Tensor<float> refused = product(rows);
      const Tensor<float> refused_one = product(1), refused_pairs = product(2);
      const Tensor<float> refused_step = product(decoding_step);
      allow_integers_for_long_rows();
      EXPECT_TRUE(equal(product(decoding_step), of_short));
      const bool has_integers = type == WeightFormat::int8 || type == WeightFormat::int4;
      if (has_integers) {
        EXPECT_TRUE(equal(refused_one, refused)) << "in f32, whatever the length";
        EXPECT_TRUE(equal(refused_pairs, refused)) << "in f32, whatever the length";
        EXPECT_TRUE(equal(refused_step, of_short)) << "steps of decoding are not prompts";
      }
      EXPECT_EQ(equal(of_long, of_short), in_integers);
      EXPECT_EQ(equal(of_long, refused), !in_integers && !(has_integers && in_bf16));
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t o = 0; o < outputs; ++o) {
          double sum = 0.0;
          for (std::int64_t i = 0; i < inputs; ++i) {
            sum += static_cast<double>(x.view()(row, i)) * restored.view()(o, i);
          }
          const double bound = largest_error(x, restored, row, o);
          ASSERT_NEAR(of_long.view()(row, o), sum, bound) << format.name;
          ASSERT_NEAR(refused.view()(row, o), sum, in_bf16 && !has_integers ? bound : 1e-4);
        }
      }
    });
  }
}

// Where the instructions in use multiply bytes faster than f32 numbers.
TEST(Quantised, IntegersMultiplyLongSequencesOnSomeSets) {
  const bool has_avx512_vnni = std::ranges::any_of(
      available_instruction_sets(), [](const auto& set) { return set.starts_with("AVX3_"); });
  on_every_instruction_set([&] {
    const std::string set = current_instruction_set();
    const bool has_dot_products =
        set == "AVX_VNNI" || set.starts_with("AVX3_") || (set == "AVX512_BF16" && has_avx512_vnni);
    EXPECT_EQ(multiplies_long_rows_in_integers(WeightFormat::int8), has_dot_products) << set;
    EXPECT_EQ(multiplies_long_rows_in_integers(WeightFormat::int4),
              has_dot_products || set == "AVX2")
        << set;
    EXPECT_FALSE(multiplies_long_rows_in_integers(WeightFormat::bf16)) << set;
  });
}

TEST(Quantised, WhatIsNotFiniteInARowStaysInItAndShows) {
  for (const float poison : {NAN, -NAN, INFINITY, -INFINITY}) {
    for_every_case(3, [&](QuantisedPanel& one) {
      one.x.fill(1.0F);
      one.x[one.shape.inputs + one.shape.inputs / 2] = poison;
      on_every_instruction_set([&] {
        const std::vector<float> sums = one.product(0, 3);
        for (std::int64_t o = 0; o < one.outputs; ++o) {
          ASSERT_TRUE(std::isfinite(sums[static_cast<std::size_t>(o)]));
          ASSERT_TRUE(std::isnan(sums[static_cast<std::size_t>(width + o)])) << poison;
          ASSERT_TRUE(std::isfinite(sums[static_cast<std::size_t>(2 * width + o)]));
        }
      });
    });
  }
}

TEST(Quantised, NothingTimesNothingIsZero) {
  for (const Format& format : formats) {
    QuantisedPanel one(format, {40, 3}, 2);
    one.weight.fill(0.0F);
    one.write();
    for (std::int64_t o = 0; o < width; ++o) EXPECT_EQ(one.scale(0, o), 0.0F);
    on_every_instruction_set([&] {
      for (const float sum : one.product(0, 2)) EXPECT_EQ(sum, 0.0F) << format.name;
    });
  }
}

}  // namespace
}  // namespace heed::kernels
