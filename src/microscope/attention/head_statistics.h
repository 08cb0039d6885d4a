// What a head does with a text, in a few numbers: enough to choose where to look closer.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/view.h"

namespace heed {

// Means over the queries from the second on: the first can only look at itself.
struct HeadStatistics {
  double entropy = 0;   // of a row, in nats
  double evenness = 0;  // entropy / that of looking at all visible tokens alike; 1 is a plain mean
  double first = 0;     // weight on the first token
  double self = 0;      // on the token itself
  double previous = 0;  // on the one just before
  double distance = 0;  // mean tokens back
  // The largest single weight of a row on a token further back than the previous one, the first
  // not counted: high when the head picks out something by its content.
  double telling = 0;
  // Over those of the queries whose token came before: there is nothing to look for at the others.
  // 0 where there are none, or where tokens are not known.
  double duplicate = 0;  // weight on earlier copies of the token
  double induction = 0;  // on what followed those copies
};

// pattern (T, T): one head's, causal.
HeadStatistics head_statistics(View<const float> pattern);

// Means of sums over `rows` queries, `repeated` of them with a token that came before; zeros for
// none.
HeadStatistics mean_statistics(const HeadStatistics& sums, std::int64_t rows,
                               std::int64_t repeated);

// The habit that says most about a head, and how strong it is.
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
  double score = 0;  // what it was ranked by
};

// All heads, the most telling first. patterns[layer] is (H, T, T).
std::vector<RankedHead> rank_heads(const std::vector<View<const float>>& patterns);

// The same for what one query sees: ranked by its largest weight on a token that is not among
// [own_begin, position], the first or the one just before.
std::vector<RankedHead> rank_heads_for(const std::vector<View<const float>>& patterns,
                                       std::int64_t position, std::int64_t own_begin);

}  // namespace heed
