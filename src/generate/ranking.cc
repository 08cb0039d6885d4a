#include "generate/ranking.h"

#include <algorithm>

namespace heed {

void Ranking::sort_beyond(std::size_t rank) {
  // Doubling the prefix keeps each extension linear in the vocabulary, and there are few.
  constexpr std::size_t fewest = 64;
  const std::size_t wanted = std::min(std::max({fewest, 2 * sorted_, rank + 1}), tokens_.size());
  const auto at = [&](std::size_t i) { return tokens_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::partial_sort(at(sorted_), at(wanted), tokens_.end(),
                    [](const ScoredToken& a, const ScoredToken& b) {
                      return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
                    });
  sorted_ = wanted;
}

}  // namespace heed
