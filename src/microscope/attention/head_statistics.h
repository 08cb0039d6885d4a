// Summary statistics of a head's attention, to choose which heads to inspect.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "microscope/attention/visible_keys.h"
#include "model/attention_site.h"
#include "tensor/view.h"

namespace heed {

// What a query can attend to.
enum class AttentionScope {
  past,        // tokens up to its own
  both_ways,   // every token of its text
  other_text,  // a source
};
AttentionScope attention_scope(const Architecture& architecture, AttentionSite site);

// Means over all queries that see more than one key. What a scope has not is zero: has_statistic().
struct HeadStatistics {
  AttentionScope scope = AttentionScope::past;
  double entropy = 0;   // of a row, in nats
  double evenness = 0;  // entropy / that of uniform attention to what it sees: 1 is uniform
  double largest = 0;   // the largest weight of a row
  double first = 0;     // weight on the first key
  double last = 0;      // on the last key that the query sees: under a causal mask its own
  // Within one text:
  double self = 0;      // on the query's own token
  double previous = 0;  // on the previous token
  double next = 0;      // on the next token, where a query sees it
  double distance = 0;  // mean distance of the key, in tokens
  // In the past: the largest weight of a row on a token before the previous one, excluding the
  // first token: high when the head selects tokens by content.
  double content_weight = 0;
  // Within one text, over queries whose token has another copy that they see; others have none to
  // attend to. 0 if there are no such queries or the tokens are unknown.
  double duplicate = 0;  // weight on other copies of the token
  double induction = 0;  // on the tokens after those copies
};

// The statistics by name, in the order in which they are shown.
struct HeadStatistic {
  std::string_view name;
  double HeadStatistics::*value;
  enum class Unit { share, number } unit;  // share: of the weight
  std::string_view meaning;                // "weight on the first token"
};
std::span<const HeadStatistic> head_statistics_table();
const HeadStatistic* find_head_statistic(std::string_view name);  // or null
bool has_statistic(AttentionScope scope, const HeadStatistic& statistic);

// Sums of a head's rows.
class HeadStatisticsSum {
 public:
  // tokens (T) of a text that attends to itself; empty: duplicate and induction are zero.
  explicit HeadStatisticsSum(AttentionScope scope, std::span<const std::int32_t> tokens = {})
      : sums_{.scope = scope}, tokens_(tokens) {}

  // Weights of a query (keys), of which it sees some.
  void add_row(std::span<const float> weights, std::int64_t query, const VisibleKeys& seen);
  void set_tokens(std::span<const std::int32_t> tokens) { tokens_ = tokens; }  // of the next rows
  // Of a row that was summed up elsewhere.
  void add(const HeadStatistics& row) { add_to(sums_, row), ++rows_; }
  void add_repeated(std::int64_t queries) { repeated_ += queries; }

  HeadStatistics means() const;
  std::int64_t repeated() const { return repeated_; }  // queries whose token has another copy

 private:
  static void add_to(HeadStatistics& sums, const HeadStatistics& row);

  HeadStatistics sums_;
  std::span<const std::int32_t> tokens_;
  std::int64_t rows_ = 0;
  std::int64_t repeated_ = 0;
};

// Of a pattern (queries, keys); of a layer with a window, how many positions it has (0: all).
// Throws Error{invalid_argument} for as many tokens as there are no queries of.
HeadStatistics head_statistics(View<const float> pattern, std::int64_t window = 0,
                               std::span<const std::int32_t> tokens = {},
                               AttentionScope scope = AttentionScope::past);

// The entropy of a row over `keys` positions, relative to that of uniform attention; 1 for one key.
double evenness_of(double entropy, std::int64_t keys);

// What characterises a head: where most of its weight goes; that it hardly chooses (`even`); or how
// far `back` it looks under a causal mask, and how clearly it chooses (`peak`) elsewhere.
enum class HeadHabit { first, last, self, previous, next, duplicate, induction, even, back, peak };
std::string_view habit_name(HeadHabit habit);  // "first", …, as in JSON

struct HeadHabitStrength {
  HeadHabit habit = HeadHabit::even;
  double strength = 0;  // a share of the weight; of `even` the evenness; of `back` tokens
};
// The strongest share from 0.4 on; else `even` from an evenness of 0.9 on; else `back` or `peak`.
HeadHabitStrength strongest_habit(const HeadStatistics& statistics);

struct RankedHead {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  HeadStatistics statistics;
  AttentionSite site = only_site;
};

// The most selective first: by content_weight in a decoder alone, else by `largest`.
void rank_heads(std::vector<RankedHead>& heads);

}  // namespace heed
