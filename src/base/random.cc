#include "base/random.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.h"

namespace heed {
namespace {

struct Product {
  std::uint32_t high;
  std::uint32_t low;
};

Product multiply(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}

std::array<std::uint32_t, 2> words(std::uint64_t value) {
  return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  // Multipliers and Weyl increments of the paper's section 4.1.
  for (int round = 0; round < 10; ++round) {
    const Product first = multiply(0xD2511F53U, counter[0]);
    const Product second = multiply(0xCD9E8D57U, counter[2]);
    counter = {second.high ^ counter[1] ^ key[0], second.low, first.high ^ counter[3] ^ key[1],
               first.low};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

std::uint32_t RandomStream::next_u32() {
  const std::uint64_t block = position_ / 4;
  if (block != block_) {
    const auto low = words(block);
    const auto high = words(stream_);
    values_ = philox({low[0], low[1], high[0], high[1]}, words(seed_));
    block_ = block;
  }
  return values_[position_++ % 4];
}

std::uint64_t RandomStream::next_u64() {
  const std::uint64_t high = next_u32();
  return (high << 32) | next_u32();
}

double RandomStream::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  check(bound > 0, "below() needs a positive bound");
  // Values under (2^64 mod bound) would favour small results: draw again.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t value = next_u64();
    if (value >= threshold) return value % bound;
  }
}

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(size), seed_(seed), stream_(stream), half_bits_(1) {
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  check(index < size_, "index inside the permutation");
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = index >> half_bits_;
    std::uint64_t right = index & mask;
    for (std::uint32_t round = 0; round < 4; ++round) {
      const auto stream = words(stream_);
      const auto mixed =
          philox({static_cast<std::uint32_t>(right), round, stream[0], stream[1]}, words(seed_));
      left = std::exchange(right, left ^ (mixed[0] & mask));
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

}  // namespace heed
