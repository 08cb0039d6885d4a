// Counter-based random numbers: value i of a stream is a pure function of (seed, stream, i), so any
// part of a sequence can be computed in any order, and resumed from its position.
#pragma once

#include <array>
#include <cstdint>

namespace heed {

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

// A sequence of random numbers with a position that can be saved and restored.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream, std::uint64_t position = 0)
      : seed_(seed), stream_(stream), position_(position) {}

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  double uniform();                          // in [0, 1), 53 random bits
  double normal();                           // mean 0, variance 1 (Box-Muller, two draws each)
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound), without bias; bound > 0

  std::uint64_t position() const { return position_; }  // numbers of 32 bits drawn so far

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_;
  std::uint64_t block_ = UINT64_MAX;  // index of the Philox block held in values_
  std::array<std::uint32_t, 4> values_{};
};

// A pseudo-random permutation of [0, size), evaluated one index at a time in O(1) memory: a
// balanced Feistel network over the next even power of two, walked until it lands inside.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream);
  std::uint64_t operator()(std::uint64_t index) const;  // index < size

 private:
  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t stream_;
  int half_bits_;
};

}  // namespace heed
