#include "generate/candidate_measures.h"

#include <cmath>
#include <vector>

#include "base/error.h"

namespace heed {

double entropy_nats(std::span<const Candidate> candidates) {
  double entropy = 0;
  for (const Candidate& candidate : candidates) {
    const double p = candidate.probability(SamplingStage::model);
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

double divergence_nats(std::span<const Candidate> before, std::span<const Candidate> after) {
  check(before.size() == after.size(), "distributions over one vocabulary");
  std::vector<double> probabilities(after.size());
  for (const Candidate& candidate : after) {
    probabilities.at(static_cast<std::size_t>(candidate.token)) =
        candidate.probability(SamplingStage::model);
  }
  double divergence = 0;
  for (const Candidate& candidate : before) {
    const double p = candidate.probability(SamplingStage::model);
    const double q = probabilities.at(static_cast<std::size_t>(candidate.token));
    if (p > 0) divergence += p * std::log(p / q);
  }
  return divergence;
}

}  // namespace heed
