#include "scoring/pcg64.h"

#include <array>
#include <bit>

namespace heed::scoring {
namespace {

constexpr std::size_t pool_words = 4;
using Pool = std::array<std::uint32_t, pool_words>;

std::uint32_t fold(std::uint32_t value) { return value ^ (value >> 16); }

// A hash whose constant changes with every use.
class HashSequence {
 public:
  HashSequence(std::uint32_t constant, std::uint32_t multiplier)
      : constant_(constant), multiplier_(multiplier) {}

  std::uint32_t operator()(std::uint32_t value) {
    value ^= constant_;
    constant_ *= multiplier_;
    return fold(value * constant_);
  }

 private:
  std::uint32_t constant_;
  std::uint32_t multiplier_;
};

// NumPy's SeedSequence: every bit of the seed reaches every word of the pool.
Pool mixed_pool(std::uint64_t seed) {
  const std::array<std::uint32_t, 2> entropy{static_cast<std::uint32_t>(seed),
                                             static_cast<std::uint32_t>(seed >> 32)};
  HashSequence hash(0x43b0d7e5, 0x931e8875);
  Pool pool{};
  for (std::size_t i = 0; i < pool_words; ++i) pool[i] = hash(i < 2 ? entropy[i] : 0);
  for (std::size_t source = 0; source < pool_words; ++source) {
    for (std::size_t target = 0; target < pool_words; ++target) {
      if (source == target) continue;
      pool[target] = fold(0xca01f9ddU * pool[target] - 0x4973f715U * hash(pool[source]));
    }
  }
  return pool;
}

std::array<std::uint64_t, 4> seed_words(std::uint64_t seed) {
  const Pool pool = mixed_pool(seed);
  HashSequence hash(0x8b51f9dd, 0x58f38ded);
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < 2 * words.size(); ++i) {
    words[i / 2] |= std::uint64_t{hash(pool[i % pool_words])} << (i % 2 * 32);
  }
  return words;
}

}  // namespace

Pcg64::Wide Pcg64::add(Wide a, Wide b) {
  const std::uint64_t low = a.low + b.low;
  return {a.high + b.high + (low < a.low ? 1 : 0), low};
}

// Modulo 2^128, from products of 32 bits.
Pcg64::Wide Pcg64::multiply(Wide a, Wide b) {
  constexpr std::uint64_t half = 0xffffffff;
  const std::uint64_t low = (a.low & half) * (b.low & half);
  const std::uint64_t middle = (a.low >> 32) * (b.low & half) + (low >> 32);
  const std::uint64_t other = (a.low & half) * (b.low >> 32) + (middle & half);
  const std::uint64_t carried = (a.low >> 32) * (b.low >> 32) + (middle >> 32) + (other >> 32);
  return {carried + a.high * b.low + a.low * b.high, other << 32 | (low & half)};
}

Pcg64::Pcg64(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = seed_words(seed);
  increment_ = {words[2] << 1 | words[3] >> 63, words[3] << 1 | 1};
  step();
  state_ = add(state_, {words[0], words[1]});
  step();
}

void Pcg64::step() {
  constexpr Wide multiplier{0x2360ed051fc65da4, 0x4385df649fccf645};
  state_ = add(multiply(state_, multiplier), increment_);
}

std::uint64_t Pcg64::next_u64() {
  step();
  return std::rotr(state_.high ^ state_.low, static_cast<int>(state_.high >> 58));
}

std::uint32_t Pcg64::next_u32() {
  has_kept_ = !has_kept_;
  if (!has_kept_) return static_cast<std::uint32_t>(kept_ >> 32);
  kept_ = next_u64();
  return static_cast<std::uint32_t>(kept_);
}

// A product's upper half is uniform once the lower halves that would favour some numbers are
// rejected. NumPy draws nothing where there is nothing to choose.
std::uint32_t Pcg64::below(std::uint32_t bound) {
  if (bound == 1) return 0;
  std::uint64_t product = std::uint64_t{next_u32()} * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t rejected = (0U - bound) % bound;
    while (static_cast<std::uint32_t>(product) < rejected) {
      product = std::uint64_t{next_u32()} * bound;
    }
  }
  return static_cast<std::uint32_t>(product >> 32);
}

}  // namespace heed::scoring
