// The random numbers of NumPy's default generator, which sacreBLEU draws its samples from. The same
// seed gives the same samples, so that p-values and intervals can be compared digit by digit.
#pragma once

#include <cstdint>

namespace heed::scoring {

// PCG XSL RR 128/64 (O'Neill: "PCG: a family of simple fast space-efficient statistically good
// algorithms for random number generation", 2014), seeded as numpy.random.default_rng(seed).
class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);

  std::uint64_t next_u64();
  std::uint32_t next_u32();  // halves of next_u64, the lower one first

  // Uniform in [0, bound), as Generator.integers(bound) (Lemire: "Fast random integer generation in
  // an interval", 2019); bound > 0.
  std::uint32_t below(std::uint32_t bound);

 private:
  struct Wide {  // an integer of 128 bits
    std::uint64_t high = 0;
    std::uint64_t low = 0;
  };
  static Wide add(Wide a, Wide b);
  static Wide multiply(Wide a, Wide b);
  void step();

  Wide state_;
  Wide increment_;
  std::uint64_t kept_ = 0;
  bool has_kept_ = false;
};

}  // namespace heed::scoring
