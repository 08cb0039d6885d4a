#include "microscope/attention/alignment.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace heed {

std::vector<AlignedWord> aligned_words(View<const float> by_words) {
  std::vector<AlignedWord> links;
  for (std::int64_t target = 0; target < by_words.extent(0); ++target) {
    const std::span<const float> row = by_words[target].span();
    const auto best = std::ranges::max_element(row);
    links.push_back({target, best - row.begin(), *best});
  }
  return links;
}

Tensor<float> cross_by_words(const RecordedPass& pass, RecordedAttention& attention,
                             const CrossHead& head, const PairWords& words, WordRow row) {
  const auto of_head = [&](std::int64_t each) {
    return by_words(attention.pattern(cross_site, head.layer, each), words.target, words.source,
                    row);
  };
  if (head.head) return of_head(*head.head);
  const std::int64_t heads = attention_of(pass.architecture(), cross_site).query_heads;
  Tensor<float> mean(Shape{std::ssize(words.target), std::ssize(words.source)});
  for (std::int64_t each = 0; each < heads; ++each) {
    const Tensor<float> own = of_head(each);
    for (std::int64_t i = 0; i < mean.size(); ++i) {
      mean[i] += own[i] / static_cast<float>(heads);
    }
  }
  return mean;
}

std::vector<HeadAlignment> head_alignments(const RecordedPass& pass, RecordedAttention& attention,
                                           const PairWords& words,
                                           const scoring::TrueAlignment& truth, WordRow row,
                                           StopFlag stop) {
  std::set<std::int32_t> linked;
  for (const auto* links : {&truth.sure, &truth.possible}) {
    for (const scoring::AlignmentLink& link : *links) {
      require(link.target >= 0 && link.target < std::ssize(words.target) && link.source >= 0 &&
                  link.source < std::ssize(words.source),
              ErrorCode::invalid_argument,
              "the link of source word {} and target word {} lies outside texts of {} and {} words",
              link.source, link.target, words.source.size(), words.target.size());
      linked.insert(link.target);
    }
  }
  std::vector<HeadAlignment> heads;
  const Architecture& architecture = pass.architecture();
  const std::int64_t count = attention_of(architecture, cross_site).query_heads;
  for (std::int64_t layer = 0; layer < architecture.decoder().layers; ++layer) {
    for (std::int64_t head = 0; head < count; ++head) {
      require(!stop_requested(stop), ErrorCode::interrupted, "interrupted while reading attention");
      std::vector<scoring::AlignmentLink> found;
      for (const AlignedWord& word :
           aligned_words(cross_by_words(pass, attention, {layer, head}, words, row))) {
        const auto target = static_cast<std::int32_t>(word.target);
        if (linked.contains(target)) {
          found.push_back({static_cast<std::int32_t>(word.source), target});
        }
      }
      heads.push_back({layer, head, scoring::count_links(found, truth)});
    }
  }
  return heads;
}

}  // namespace heed
