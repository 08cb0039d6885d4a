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

}  // namespace heed::scoring
