// Summary statistics of a head's attention on a text, to choose which heads to inspect.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
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
  double content_weight = 0;
  // Over queries whose token occurred before; others have no copy to attend to. 0 if there are no
  // such queries or the tokens are unknown.
  double duplicate = 0;  // weight on earlier copies of the token
  double induction = 0;  // on the tokens after those copies
};

// pattern (T, T): one head's, causal; of a layer with a window, how many positions it has (0: all).
// tokens (T) of the text; empty: duplicate and induction are zero.
HeadStatistics head_statistics(View<const float> pattern, std::int64_t window = 0,
                               std::span<const std::int32_t> tokens = {});

// The entropy of a row over `keys` positions, relative to that of uniform attention; 1 for one key.
double evenness_of(double entropy, std::int64_t keys);

// Divides sums over `rows` queries, `repeated` of them with a token that occurred before; zeros for
// none.
HeadStatistics mean_statistics(const HeadStatistics& sums, std::int64_t rows,
                               std::int64_t repeated);

// What characterises a head: where most of its weight goes; that it hardly chooses (`even`); or how
// far `back` it looks under a causal mask, and how clearly it chooses (`peak`) elsewhere.
enum class HeadHabit { first, last, self, previous, next, duplicate, induction, even, back, peak };
std::string_view habit_name(HeadHabit habit);  // "first", …, as in JSON

struct HeadHabitStrength {
  HeadHabit habit = HeadHabit::even;
  double strength = 0;  // a share of the weight; of `even` the evenness; of `back` tokens
};
HeadHabitStrength strongest_habit(const HeadStatistics& statistics);
// The strongest of `shares` from 0.4 on; else `even` from an evenness of 0.9 on; else `otherwise`.
HeadHabitStrength strongest_habit(std::span<const HeadHabitStrength> shares, double evenness,
                                  const HeadHabitStrength& otherwise);

struct RankedHead {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  HeadStatistics statistics;
};

// All heads, by their content_weight, the largest first. patterns[layer] is (H, T, T); `attention`
// has the windows; tokens (T) or none.
std::vector<RankedHead> rank_heads(const std::vector<View<const float>>& patterns,
                                   const AttentionSpecification& attention = {},
                                   std::span<const std::int32_t> tokens = {});

}  // namespace heed
