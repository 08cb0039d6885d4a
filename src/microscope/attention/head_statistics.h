// Summary statistics of a head's attention on a text, to choose which heads to inspect.
#pragma once

#include <cstdint>
#include <vector>

#include "model/architecture.h"
#include "tensor/view.h"

namespace heed {

// Means over all queries but the first, which can attend to itself only.
struct HeadStatistics {
  double entropy = 0;   // of a row, in nats
  double evenness = 0;  // entropy / that of uniform attention to what it sees: 1 is uniform
  double first = 0;     // weight on the first token
  double self = 0;      // on the query's own token
  double previous = 0;  // on the previous token
  double distance = 0;  // mean distance of the key, in tokens
  // The largest weight of a row on a token before the previous one, excluding the first token: high
  // when the head selects tokens by content.
  double telling = 0;
  // Over queries whose token occurred before; others have no copy to attend to. 0 if there are no
  // such queries or the tokens are unknown.
  double duplicate = 0;  // weight on earlier copies of the token
  double induction = 0;  // on the tokens after those copies
};

// pattern (T, T): one head's, causal; of a layer with a window, how many positions it has (0: all).
HeadStatistics head_statistics(View<const float> pattern, std::int64_t window = 0);

// The entropy of a row over `keys` positions, relative to that of uniform attention; 1 for one key.
double evenness_of(double entropy, std::int64_t keys);

// Divides sums over `rows` queries, `repeated` of them with a token that occurred before; zeros for
// none.
HeadStatistics mean_statistics(const HeadStatistics& sums, std::int64_t rows,
                               std::int64_t repeated);

// The most characteristic behaviour of a head, and its strength.
enum class HeadHabit { first, self, previous, even, far };
struct HeadHabitStrength {
  HeadHabit habit = HeadHabit::far;
  double strength = 0;  // a share of the weight; for `even` the evenness; for `far` the distance
};
HeadHabitStrength strongest_habit(const HeadStatistics& statistics);

struct RankedHead {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  HeadStatistics statistics;
  double score = 0;  // the ranking criterion
};

// All heads, the most selective first. patterns[layer] is (H, T, T); `attention` has the windows.
std::vector<RankedHead> rank_heads(const std::vector<View<const float>>& patterns,
                                   const AttentionSpecification& attention = {});

}  // namespace heed
