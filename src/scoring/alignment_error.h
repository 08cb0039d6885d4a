// Alignment error rate (Och and Ney: "A systematic comparison of various statistical alignment
// models", 2003): how far an alignment of words differs from one made by people, or from a known
// one.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace heed::scoring {

// A word of the source and a word of the target that belong together; both count from 0.
struct AlignmentLink {
  std::int32_t source = 0;
  std::int32_t target = 0;

  auto operator<=>(const AlignmentLink&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The truth about a sentence: sure links must be found, possible ones may be. Sure links are
// possible, too, whether listed so or not.
struct TrueAlignment {
  std::vector<AlignmentLink> sure;
  std::vector<AlignmentLink> possible;
};

// Of a sentence or, summed, of a corpus. Links that are given twice count once.
struct AlignmentCounts {
  std::int64_t found = 0;           // |A|
  std::int64_t sure = 0;            // |S|
  std::int64_t found_sure = 0;      // |A ∩ S|
  std::int64_t found_possible = 0;  // |A ∩ P|

  AlignmentCounts& operator+=(const AlignmentCounts& other);

  double precision() const;   // |A ∩ P| / |A|; 1 where nothing was found
  double recall() const;      // |A ∩ S| / |S|; 1 where nothing is sure
  double error_rate() const;  // 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|); 0 where both are empty
};

AlignmentCounts count_links(std::span<const AlignmentLink> found, const TrueAlignment& truth);

// Over all sentences: sums of counts, so that long sentences weigh more. Throws
// Error{invalid_argument} where the numbers of sentences differ.
AlignmentCounts count_links(std::span<const std::vector<AlignmentLink>> found,
                            std::span<const TrueAlignment> truth);

}  // namespace heed::scoring
