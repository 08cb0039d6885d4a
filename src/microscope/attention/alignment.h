// How well a head of cross-attention aligns the words of two texts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/attention/text_words.h"
#include "scoring/alignment_error.h"

namespace heed {

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
