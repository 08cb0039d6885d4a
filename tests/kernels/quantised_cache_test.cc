// Keys and values as bf16 and int8: what rounding costs, and attention over what is left.
#include "kernels/quantised_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/bf16.h"
#include "base/expect_error.h"
#include "kernels/cases.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

constexpr CacheType quantised_types[] = {CacheType::bf16, CacheType::int8};

// Rows in memory as a cache lays them out: (B, H, capacity, bytes) with some room behind.
struct Stored {
  Stored(CacheType row_type, const Shape& shape)
      : type(row_type),
        rows(Shape{shape[0], shape[2], shape[1] + 3, cache_row_bytes(row_type, shape[3])}),
        scales(Shape{shape[0], shape[2], shape[1] + 3}),
        extents(shape) {}

  template <class T>
  View<T> positions_first(View<T> from) const {
    if (from.rank() == 3) {
      return {from.data(),
              {extents[0], extents[1], extents[2]},
              {from.stride(0), from.stride(2), from.stride(1)}};
    }
    return {from.data(),
            {extents[0], extents[1], extents[2], from.extent(3)},
            {from.stride(0), from.stride(2), from.stride(1), from.stride(3)}};
  }
  MutableQuantisedRows writable() {
    return {type, positions_first(rows.view()), positions_first(scales.view())};
  }
  ConstQuantisedRows view() const {
    return {type, positions_first(rows.view()), positions_first(scales.view())};
  }
  Tensor<float> restored() const {
    Tensor<float> values(extents);
    dequantise_rows(view(), values);
    return values;
  }

  CacheType type;
  Tensor<std::byte> rows;
  Tensor<float> scales;
  Shape extents;  // (B, S, H, D)
};

Stored store(CacheType type, const Tensor<float>& values) {
  Stored stored(type, values.shape());
  quantise_rows(values, stored.writable());
  return stored;
}

// Into a memory of more positions, whose heads are far apart; nothing else of it is touched.
TEST(QuantisedCache, RowsInF32AreStoredAsTheyAre) {
  for (const std::int64_t size : {1, 3, 16, 80}) {
    const Twin values = random_twin(Shape{2, 5, 3, size}, 1, 3.0);
    on_every_instruction_set([&] {
      Tensor<float> memory(Shape{2, 3, 9, size});
      const View<float> by_position(memory.data(), {2, 9, 3, size}, {27 * size, size, 9 * size, 1});
      store_rows(values.single, by_position.slice(1, 2, 7));
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t s = 0; s < 9; ++s) {
          for (std::int64_t h = 0; h < 3; ++h) {
            for (std::int64_t i = 0; i < size; ++i) {
              const bool is_stored = s >= 2 && s < 7;
              ASSERT_EQ(by_position(b, s, h, i),
                        is_stored ? values.single.view()(b, s - 2, h, i) : 0.0F);
            }
          }
        }
      }
    });
  }
}

TEST(QuantisedCache, RowsAreRoundedToNearest) {
  for (const std::int64_t size : {1, 3, 8, 16, 33, 64, 80, 259}) {
    const Shape shape{2, 5, 3, size};
    const Twin values = random_twin(shape, 1, 3.0);
    on_every_instruction_set([&] {
      const Tensor<float> as_bf16 = store(CacheType::bf16, values.single).restored();
      for (std::int64_t i = 0; i < values.single.size(); ++i) {
        ASSERT_EQ(as_bf16[i], bf16_to_f32(f32_to_bf16(values.single[i]))) << i;
      }
      const Stored stored = store(CacheType::int8, values.single);
      const Tensor<float> as_int8 = stored.restored();
      for (std::int64_t row = 0; row < values.single.size() / size; ++row) {
        const std::span<const float> numbers = values.single.span().subspan(
            static_cast<std::size_t>(row * size), static_cast<std::size_t>(size));
        float largest = 0.0F;
        for (const float number : numbers) largest = std::max(largest, std::abs(number));
        const std::int64_t h = row % 3, s = row / 3 % 5, b = row / 15;
        EXPECT_EQ(stored.view().scales(b, s, h), largest / 127.0F);
        // half a step, and the roundings of scale, its inverse and two products of up to 127 steps
        const double bound = largest / 127.0 * (0.5 + 127.0 * 4.0 * unit_roundoff);
        for (std::int64_t k = 0; k < size; ++k) {
          ASSERT_NEAR(as_int8[row * size + k], numbers[static_cast<std::size_t>(k)], bound);
        }
      }
    });
  }
}

TEST(QuantisedCache, ZerosStayZeroAndNotANumberComesThrough) {
  const Shape shape{1, 4, 1, 20};
  Tensor<float> values(shape);
  values[20 + 7] = std::numeric_limits<float>::denorm_min();
  values[40 + 7] = std::numeric_limits<float>::quiet_NaN();
  values[60 + 7] = std::numeric_limits<float>::infinity();
  on_every_instruction_set([&] {
    for (const CacheType type : quantised_types) {
      const Tensor<float> restored = store(type, values).restored();
      for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(restored[i], 0.0F) << i;
      EXPECT_TRUE(std::isnan(restored[40 + 7]));
      EXPECT_FALSE(std::isfinite(restored[60 + 7]));
    }
  });
}

TEST(QuantisedCache, AttentionMatchesTheReferenceOnTheRestoredMemory) {
  for (const cases::Attention& shape : cases::attention()) {
    if (!cases::checked(shape.use) || shape.dropout > 0 || shape.query_offset > 0) continue;
    SCOPED_TRACE(shape.name());
    const Shape query_shape{shape.batch, shape.queries, shape.heads, shape.head_size};
    const Shape memory_shape{shape.batch, shape.memory, shape.key_heads(), shape.head_size};
    const Twin query = random_twin(query_shape, 1);
    const Twin key = random_twin(memory_shape, 2), value = random_twin(memory_shape, 3);
    const Twin bias = random_twin({shape.heads, shape.distances()}, 4);
    PositionBias<float> position_bias{};
    PositionBias<double> exact_bias{};
    if (shape.biased) {
      position_bias = {bias.single, shape.first_distance()};
      exact_bias = {bias.exact, shape.first_distance()};
    }
    for (const CacheType type : quantised_types) {
      SCOPED_TRACE(cache_type_name(type));
      const Stored keys = store(type, key.single), values = store(type, value.single);
      const Tensor<float> restored_keys = keys.restored(), restored_values = values.restored();
      Tensor<double> exact_keys(memory_shape), exact_values(memory_shape);
      std::copy_n(restored_keys.data(), restored_keys.size(), exact_keys.data());
      std::copy_n(restored_values.data(), restored_values.size(), exact_values.data());
      Twin out(query_shape), log_sum_exp(Shape{shape.batch, shape.heads, shape.queries});
      reference::attention_forward<double>({.query = query.exact,
                                            .key = exact_keys,
                                            .value = exact_values,
                                            .mask = shape.mask,
                                            .scale = static_cast<double>(shape.scale()),
                                            .window = shape.window,
                                            .soft_cap = static_cast<double>(shape.soft_cap),
                                            .position_bias = exact_bias},
                                           out.exact, log_sum_exp.exact);
      // As of attention in f32 (tests/kernels/attention_test.cc), and two roundings more: a score
      // and a weight are each multiplied by a scale.
      const double tolerance =
          unit_roundoff * (10.0 + 2.0 * std::sqrt(static_cast<double>(shape.head_size)) +
                           std::sqrt(static_cast<double>(shape.memory)) / 4.0);
      on_every_instruction_set([&] {
        out.single.fill(NAN);
        attention_forward({.query = query.single,
                           .key = keys.view(),
                           .value = values.view(),
                           .mask = shape.mask,
                           .scale = shape.scale(),
                           .window = shape.window,
                           .soft_cap = shape.soft_cap,
                           .position_bias = position_bias},
                          out.single, log_sum_exp.single);
        EXPECT_LE(relative_error(out), tolerance);
        EXPECT_LE(relative_error(log_sum_exp), tolerance);
      });
    }
  }
}

TEST(QuantisedCache, AttentionDoesNotSwallowNotANumber) {
  const Shape shape{1, 9, 1, 16};
  Twin key = random_twin(shape, 2);
  const Twin value = random_twin(shape, 3), query = random_twin({1, 2, 1, 16}, 4);
  key.single[8 * 16 + 3] = NAN;  // seen by the last query alone
  for (const CacheType type : quantised_types) {
    const Stored keys = store(type, key.single), values = store(type, value.single);
    Tensor<float> out(query.single.shape()), log_sum_exp(Shape{1, 1, 2});
    on_every_instruction_set([&] {
      attention_forward({query.single, keys.view(), values.view(), Mask::causal, 0.25F}, out,
                        log_sum_exp);
      EXPECT_FALSE(std::isnan(out[0]));
      EXPECT_TRUE(std::isnan(out[16]));
    });
  }
}

TEST(QuantisedCache, SizesAreCountedAndNamesAreKnown) {
  EXPECT_EQ(cache_row_bytes_with_scale(CacheType::f32, 64), 256);
  EXPECT_EQ(cache_row_bytes_with_scale(CacheType::bf16, 64), 128);
  EXPECT_EQ(cache_row_bytes_with_scale(CacheType::int8, 64), 68);
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::int8}) {
    EXPECT_EQ(parse_cache_type(cache_type_name(type)), type);
  }
  testing::expect_error(
      ErrorCode::invalid_argument, [] { parse_cache_type("int4"); }, "no cache type 'int4'");
}

TEST(QuantisedCache, WrongOperandsAreNamed) {
  const Twin query = random_twin({1, 2, 2, 8}, 1), key = random_twin({1, 5, 2, 8}, 2);
  const Stored keys = store(CacheType::int8, key.single);
  const Stored others = store(CacheType::bf16, key.single);
  Tensor<float> out(query.single.shape()), log_sum_exp(Shape{1, 2, 2});
  const auto refuse = [&](const QuantisedCacheAttention& input, const char* part) {
    testing::expect_error(
        ErrorCode::invalid_argument, [&] { attention_forward(input, out, log_sum_exp); }, part);
  };
  refuse({query.single, keys.view(), others.view()}, "keys are int8 and values bf16");
  ConstQuantisedRows cut = keys.view();
  cut.rows = cut.rows.slice(1, 0, 1);
  refuse({query.single, cut, keys.view()}, "key");
  ConstQuantisedRows unscaled = keys.view();
  unscaled.scales = {};
  refuse({query.single, keys.view(), unscaled}, "value");
  ConstQuantisedRows whole = keys.view();
  whole.type = CacheType::f32;
  refuse({query.single, whole, keys.view()}, "is not quantised");
}

}  // namespace
}  // namespace heed::kernels
