#include "model/cache.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/random.h"

namespace heed {
namespace {

// (B, T, H, D)
Tensor<float> random_rows(const StackSpecification& config, std::int64_t positions,
                          std::uint64_t stream) {
  Tensor<float> rows(Shape{2, positions, config.heads(), config.head_size()});
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
  const StackSpecification config = make_gpt_config(2, 3, 48, 16, 10);
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
    const Shape shape{2, 5, config.heads(), config.head_size()};
    const Tensor<float> keys = restored(cache.quantised_keys(1, 5), shape);
    const Tensor<float> first = random_rows(config, 4, 1), last = random_rows(config, 1, 1);
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t s = 0; s < 5; ++s) {
        for (std::int64_t h = 0; h < config.heads(); ++h) {
          for (std::int64_t k = 0; k < config.head_size(); ++k) {
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
  const StackSpecification config = make_gpt_config(2, 3, 48, 16, 10);
  KeyValueCache cache(config, 1, 10);
  const Tensor<float> two = random_rows(config, 4, 1);  // of two sequences
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { cache.store(0, two, two); },
      "keys for the cache has shape (2, 4, 3, 16), expected (1, 4, 3, 16)");
  KeyValueCache fitting(config, 2, 10);
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { fitting.store(2, two, two); }, "layers 0 to 1, not 2");
}

// Six sequences of random keys and values, four positions long.
KeyValueCache filled_cache(CacheType type) {
  const StackSpecification config = make_gpt_config(2, 3, 48, 16, 10);
  KeyValueCache cache(config, 6, 5, type);
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    Tensor<float> keys(Shape{6, 4, 3, 16}), values(Shape{6, 4, 3, 16});
    RandomStream random(5, static_cast<std::uint64_t>(layer));
    for (float& number : keys.span()) number = static_cast<float>(random.normal());
    for (float& number : values.span()) number = static_cast<float>(random.normal());
    cache.store(layer, keys, values);
  }
  cache.advance(4);
  return cache;
}

// Every number of sequence b.
std::vector<float> numbers_of(const KeyValueCache& cache, std::int64_t b) {
  std::vector<float> numbers;
  const Shape shape{cache.batch(), cache.length(), 3, 16};
  const auto add = [&](View<const float> rows) {
    for (std::int64_t s = 0; s < shape[1]; ++s) {
      for (std::int64_t h = 0; h < 3; ++h) {
        for (std::int64_t k = 0; k < 16; ++k) numbers.push_back(rows(b, s, h, k));
      }
    }
  };
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    if (cache.type() == CacheType::f32) {
      add(cache.keys(layer, shape[1]));
      add(cache.values(layer, shape[1]));
    } else {
      add(restored(cache.quantised_keys(layer, shape[1]), shape));
      add(restored(cache.quantised_values(layer, shape[1]), shape));
    }
  }
  return numbers;
}

// In place (children of parents that stay, or from beyond the end), and through other memory.
TEST(KeyValueCache, SelectedSequencesAreCopiesOfTheirParents) {
  const std::vector<std::vector<std::int64_t>> selections{
      {0, 1, 2, 3, 4, 5}, {0, 0, 2, 3, 3, 3}, {5, 1, 4}, {0, 5, 2, 2},
      {1, 0, 2, 3, 4, 5}, {2, 2, 3, 3},       {5},       {1, 1}};
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::int8}) {
    const KeyValueCache before = filled_cache(type);
    for (const auto& parents : selections) {
      KeyValueCache cache = filled_cache(type);
      cache.select(parents);
      ASSERT_EQ(cache.batch(), std::ssize(parents));
      for (std::int64_t r = 0; r < cache.batch(); ++r) {
        EXPECT_EQ(numbers_of(cache, r), numbers_of(before, parents[static_cast<std::size_t>(r)]));
      }
      // and there is room for as many as at first
      cache.select(std::vector<std::int64_t>(6, 0));
      EXPECT_EQ(numbers_of(cache, 5), numbers_of(before, parents[0]));
    }
  }
}

TEST(KeyValueCache, ReservesRoomForMorePositions) {
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::int8}) {
    const KeyValueCache before = filled_cache(type);
    KeyValueCache cache = filled_cache(type);
    cache.reserve(3);
    EXPECT_EQ(cache.capacity(), 5);
    cache.reserve(9);
    EXPECT_EQ(cache.capacity(), 9);
    EXPECT_EQ(cache.length(), 4);
    for (std::int64_t b = 0; b < 6; ++b) EXPECT_EQ(numbers_of(cache, b), numbers_of(before, b));
    const Tensor<float> more(Shape{6, 5, 3, 16});
    cache.store(1, more, more);
  }
}

}  // namespace
}  // namespace heed
