#include "model/cache.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/random.h"

namespace heed {
namespace {

// (B, T, H, D)
Tensor<float> random_rows(const GptConfig& config, std::int64_t positions, std::uint64_t stream) {
  Tensor<float> rows(Shape{2, positions, config.heads, config.head_size});
  RandomStream random(5, stream);
  for (float& number : rows.span()) number = static_cast<float>(random.normal());
  return rows;
}

Tensor<float> restored(const kernels::ConstQuantisedRows& rows, const Shape& shape) {
  Tensor<float> numbers(shape);
  kernels::dequantise_rows(rows, numbers);
  return numbers;
}

TEST(KeyValueCache, KeepsWhatItIsGivenInItsOwnFormat) {
  const GptConfig config = make_gpt_config(2, 3, 48, 16, 10);
  for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
    KeyValueCache cache(config, 2, 10, type);
    EXPECT_EQ(cache.capacity(), 10);
    EXPECT_EQ(cache.bytes(), 2 * cache_bytes(config, type, 10));
    for (const std::int64_t positions : {4, 1}) {
      for (std::int64_t layer = 0; layer < 2; ++layer) {
        cache.store(layer, random_rows(config, positions, static_cast<std::uint64_t>(layer)),
                    random_rows(config, positions, 9));
      }
      cache.advance(positions);
    }
    // the last position appended to the four: a step of int8 is a largest magnitude of about 3,
    // over 127
    const Shape shape{2, 5, config.heads, config.head_size};
    const Tensor<float> keys = restored(cache.quantised_keys(1, 5), shape);
    const Tensor<float> first = random_rows(config, 4, 1), last = random_rows(config, 1, 1);
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t s = 0; s < 5; ++s) {
        for (std::int64_t h = 0; h < config.heads; ++h) {
          for (std::int64_t k = 0; k < config.head_size; ++k) {
            const float wanted = s < 4 ? first.view()(b, s, h, k) : last.view()(b, 0, h, k);
            EXPECT_NEAR(keys.view()(b, s, h, k), wanted, 0.02) << s;
          }
        }
      }
    }
    cache.truncate(3);
    EXPECT_EQ(cache.length(), 3);
    const Tensor<float> many = random_rows(config, 8, 2);
    testing::expect_error(
        ErrorCode::invalid_argument, [&] { cache.store(0, many, many); },
        "room for 10 positions, not for 11");
  }
}

// A cache of another batch or model is refused before anything is written to it.
TEST(KeyValueCache, RefusesKeysOfAnotherShape) {
  const GptConfig config = make_gpt_config(2, 3, 48, 16, 10);
  KeyValueCache cache(config, 1, 10);
  const Tensor<float> two = random_rows(config, 4, 1);  // of two sequences
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { cache.store(0, two, two); },
      "keys for the cache has shape (2, 4, 3, 16), expected (1, 4, 3, 16)");
  KeyValueCache fitting(config, 2, 10);
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { fitting.store(2, two, two); }, "layers 0 to 1, not 2");
}

}  // namespace
}  // namespace heed
