// Summary statistics of the heads of an encoder-decoder on a pair of texts, and how well a head
// aligns the words of two texts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/head_statistics.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/attention/text_words.h"
#include "scoring/alignment_error.h"

namespace heed {

// Means over all queries that see more than one key.
struct PairHeadStatistics {
  AttentionSite kind = encoder_site;
  std::int64_t layer = 0;
  std::int64_t head = 0;
  double entropy = 0;   // of a row, in nats
  double evenness = 0;  // entropy / that of uniform attention to what the row sees: 1 is uniform
  double largest = 0;   // the largest weight of a row
  double first = 0;     // weight on the first key
  double last = 0;      // on the last key that the row sees; the end of the source, across texts
  // Within one text, else 0: weight on the query's own token, on its neighbours, and the mean
  // distance of the key in tokens, whatever its direction.
  double self = 0;
  double previous = 0;
  double next = 0;
  double distance = 0;
};

// Of a pattern (queries, keys).
PairHeadStatistics pair_head_statistics(View<const float> pattern, AttentionSite kind);

// By the rule of heads of one text. Across texts only the first and the last key are named.
HeadHabitStrength strongest_habit(const PairHeadStatistics& statistics);

// Of every head of a kind, layer by layer. Throws Error{interrupted} when stopped.
std::vector<PairHeadStatistics> pair_statistics(const RecordedPass& pass,
                                                RecordedAttention& attention, AttentionSite kind,
                                                StopFlag stop = nullptr);

// The words of a pair; those of the target as the decoder reads them.
struct PairWords {
  std::span<const TextWord> source;
  std::span<const TextWord> target;
};

struct AlignedWord {
  std::int64_t target = 0;  // a word
  std::int64_t source = 0;  // the word with its largest weight
  double weight = 0;
};
// For each word of the target, (target words, source words) by words.
std::vector<AlignedWord> aligned_words(View<const float> by_words);

// A head of cross-attention, or the mean of all heads of a layer.
struct CrossHead {
  std::int64_t layer = 0;
  std::optional<std::int64_t> head;  // none: the mean
};
Tensor<float> cross_by_words(const RecordedPass& pass, RecordedAttention& attention,
                             const CrossHead& head, const PairWords& words, WordRow row);

// How well each cross head aligns words: for each word of the target that the truth links, the word
// of the source with its largest weight. Counts can be summed over sentences.
struct HeadAlignment {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  scoring::AlignmentCounts counts;
};
std::vector<HeadAlignment> head_alignments(const RecordedPass& pass, RecordedAttention& attention,
                                           const PairWords& words,
                                           const scoring::TrueAlignment& truth, WordRow row,
                                           StopFlag stop = nullptr);

}  // namespace heed
