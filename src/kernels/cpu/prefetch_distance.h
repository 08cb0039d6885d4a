// How far ahead of what is multiplied weights are prefetched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace heed::kernels {

// Memory delivers at its full rate if as much is on its way as it delivers within its latency.
// Processors differ widely in that, and so do the distances that are best: this one is found while
// tokens are decoded, by timing some products with each of a few distances, and again from time to
// time, since neighbours on a shared machine take their part of the memory. May be used by several
// threads.
class PrefetchDistance {
 public:
  static constexpr std::array<std::int64_t, 4> distances = {512, 2048, 4096, 8192};  // bytes
  static constexpr std::size_t products = 24;     // timed for each distance
  static constexpr std::int64_t period = 10'000;  // products from one trial to the next

  // For the next product.
  std::int64_t next();
  // The best one so far.
  std::int64_t best() const;
  // How long a product with one of the distances took, for each byte of its weights.
  void took(std::int64_t distance, double seconds_for_byte);

 private:
  struct Times {
    std::array<double, products> seconds;
    std::size_t count = 0;

    bool complete() const { return count == products; }
    double median() const;
  };

  void settle();

  mutable std::mutex mutex_;
  std::array<Times, distances.size()> times_;
  std::size_t best_ = 1;
  std::int64_t settled_for_ = 0;  // products until the next trial
  std::uint64_t random_ = 1;
};

}  // namespace heed::kernels
