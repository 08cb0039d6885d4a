// How far a score depends on the choice of sentences: bootstrap resampling, and its paired form for
// the difference of two systems (Koehn: "Statistical significance tests for machine translation
// evaluation", 2004), as sacreBLEU computes both. With sacreBLEU's seed, which is the default, the
// samples are sacreBLEU's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "scoring/metric.h"

namespace heed::scoring {

struct BootstrapOptions {
  std::int64_t samples = 1000;
  std::uint64_t seed = 12345;
  ProgressCallback progress;  // of samples
  StopFlag stop = nullptr;    // set: throws Error{interrupted}
};

// Of a score over the samples: 95 % of them lie in mean ± half_width, which is half the distance
// between their bounds.
struct Interval {
  double mean = 0;
  double half_width = 0;
};

struct SystemScore {
  double score = 0;  // of the corpus itself
  Interval interval;
  std::optional<double> p_value;  // of the difference to the baseline; the baseline has none
};

// The score of each system on each sample: (systems, samples). All systems are scored on the same
// samples. Throws Error{invalid_argument} unless there are systems, all of them with statistics of
// one shape, and samples.
std::vector<std::vector<double>> resampled_scores(const Metric& metric,
                                                  std::span<const SentenceStatistics> systems,
                                                  const BootstrapOptions& options = {});

Interval interval_of(std::vector<double> scores);

// The share of samples in which two systems of equal quality would differ as much as these do:
// differences over the samples, moved to their mean, against the difference on the corpus. Systems
// that differ on no sample give 1; sacreBLEU gives them its smallest p-value.
double p_value(std::span<const double> baseline, std::span<const double> system, double difference);

// The first system is the baseline. Throws what resampled_scores throws.
std::vector<SystemScore> paired_bootstrap(const Metric& metric,
                                          std::span<const SentenceStatistics> systems,
                                          const BootstrapOptions& options = {});

// The random numbers of NumPy's default generator, which sacreBLEU draws its samples from. The same
// seed gives the same samples, so that p-values and intervals can be compared digit by digit.

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
