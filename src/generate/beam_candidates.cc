#include "generate/beam_candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/log_sum_exp.h"

namespace heed {
namespace {

// Whether any of these logits is at least `least`: without a branch for each, so that the compiler
// makes vectors of it.
constexpr std::int64_t scanned = 32;
bool any_at_least(const float* logits, float least) {
  int found = 0;
  for (std::int64_t v = 0; v < scanned; ++v) found |= static_cast<int>(logits[v] >= least);
  return found != 0;
}

// A heap of the likeliest candidates so far, the least likely of them in front.
class LikeliestCandidates {
 public:
  LikeliestCandidates(std::size_t count, std::vector<BeamCandidate>& heap)
      : count_(count), heap_(heap) {
    heap_.clear();
    heap_.reserve(count);
  }

  // What a continuation must exceed, in log-probability.
  double bar() const {
    return heap_.size() < count_ ? -std::numeric_limits<double>::infinity()
                                 : heap_.front().log_probability;
  }

  // Candidates come in the order in which equals go first.
  void offer(const BeamCandidate& candidate) {
    if (heap_.size() == count_) {
      std::pop_heap(heap_.begin(), heap_.end(), goes_before);
      heap_.back() = candidate;
    } else {
      heap_.push_back(candidate);
    }
    std::push_heap(heap_.begin(), heap_.end(), goes_before);
  }

  void sort() { std::sort_heap(heap_.begin(), heap_.end(), goes_before); }

 private:
  static bool goes_before(const BeamCandidate& a, const BeamCandidate& b) {
    return a.goes_before(b);
  }

  std::size_t count_;
  std::vector<BeamCandidate>& heap_;
};

// Offers tokens [begin, end) of a row.
struct BeamRow {
  const float* logits;
  double offset;  // a token's logit and it are the log-probability of the continuation
  std::int32_t parent;
  std::int32_t forbidden;

  // At most the smallest logit that exceeds the bar, as a float.
  float min_logit(double bar) const {
    const auto rounded = static_cast<float>(bar - offset);
    return std::nextafter(rounded, -std::numeric_limits<float>::infinity());
  }

  void offer(std::int64_t begin, std::int64_t end, LikeliestCandidates& likeliest) const {
    for (std::int64_t v = begin; v < end; ++v) {
      const double log_probability = static_cast<double>(logits[v]) + offset;
      if (!(log_probability > likeliest.bar()) || v == forbidden) continue;
      likeliest.offer({log_probability, static_cast<std::int32_t>(v), parent});
    }
  }
};

}  // namespace

void find_candidates(View<const float> logits, std::span<const double> log_probabilities,
                     const AllowedTokens& allowed, std::size_t count,
                     std::vector<BeamCandidate>& candidates) {
  const std::int64_t vocabulary = logits.extent(1);
  LikeliestCandidates likeliest(count, candidates);
  for (std::int64_t r = 0; r < logits.extent(0); ++r) {
    const float* const row = logits.data() + r * vocabulary;
    const float normaliser = kernels::log_sum_exp({row, static_cast<std::size_t>(vocabulary)});
    require(std::isfinite(normaliser), ErrorCode::diverged,
            "the logits of hypothesis {} are not finite: log Σ exp is {}", r + 1, normaliser);
    const BeamRow of_row{row, log_probabilities[static_cast<std::size_t>(r)] - normaliser,
                         static_cast<std::int32_t>(r), allowed.forbidden};
    std::int64_t begin = 0;
    float least = of_row.min_logit(likeliest.bar());
    for (; begin + scanned <= allowed.count; begin += scanned) {
      if (!any_at_least(row + begin, least)) continue;
      of_row.offer(begin, begin + scanned, likeliest);
      least = of_row.min_logit(likeliest.bar());
    }
    of_row.offer(begin, allowed.count, likeliest);
  }
  likeliest.sort();
}

}  // namespace heed
