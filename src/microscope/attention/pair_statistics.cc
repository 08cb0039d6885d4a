#include "microscope/attention/pair_statistics.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace heed {
namespace {

void require_time(StopFlag stop) {
  require(!stop_requested(stop), ErrorCode::interrupted, "interrupted while reading attention");
}

// One row of weights on the keys that it sees.
void add_row(std::span<const float> row, std::int64_t query, bool is_cross,
             PairHeadStatistics& sums) {
  double entropy = 0, largest = 0;
  for (std::size_t s = 0; s < row.size(); ++s) {
    const double weight = row[s];
    if (weight > 0) entropy -= weight * std::log(weight);
    largest = std::max(largest, weight);
    if (is_cross) continue;
    const std::int64_t ahead = static_cast<std::int64_t>(s) - query;
    sums.distance += weight * static_cast<double>(std::abs(ahead));
    if (ahead == 0) sums.self += weight;
    if (ahead == -1) sums.previous += weight;
    if (ahead == 1) sums.next += weight;
  }
  sums.entropy += entropy;
  sums.evenness += evenness_of(entropy, std::ssize(row));
  sums.largest += largest;
  sums.first += row.front();
  sums.last += row.back();
}

}  // namespace

PairHeadStatistics pair_head_statistics(View<const float> pattern, AttentionSite kind) {
  PairHeadStatistics means{.kind = kind};
  double rows = 0;
  for (std::int64_t t = 0; t < pattern.extent(0); ++t) {
    const std::int64_t seen = kind == decoder_site ? t + 1 : pattern.extent(1);
    if (seen == 1 && pattern.extent(1) > 1) continue;
    add_row(pattern[t].span().first(static_cast<std::size_t>(seen)), t, kind == cross_site, means);
    ++rows;
  }
  for (double* sum : {&means.entropy, &means.evenness, &means.largest, &means.first, &means.last,
                      &means.self, &means.previous, &means.next, &means.distance}) {
    *sum /= std::max(rows, 1.0);
  }
  return means;
}

HeadHabitStrength strongest_habit(const PairHeadStatistics& statistics) {
  std::vector<HeadHabitStrength> shares{{HeadHabit::first, statistics.first}};
  // The last key that a row of the decoder sees is its own.
  if (statistics.kind != decoder_site) {
    shares.push_back({HeadHabit::last, statistics.last});
  }
  if (statistics.kind != cross_site) {
    shares.push_back({HeadHabit::previous, statistics.previous});
    shares.push_back({HeadHabit::self, statistics.self});
  }
  if (statistics.kind == encoder_site) {
    shares.push_back({HeadHabit::next, statistics.next});
  }
  return strongest_habit(shares, statistics.evenness,
                         statistics.kind == decoder_site
                             ? HeadHabitStrength{HeadHabit::back, statistics.distance}
                             : HeadHabitStrength{HeadHabit::peak, statistics.largest});
}

std::vector<PairHeadStatistics> pair_statistics(const RecordedPass& pass,
                                                RecordedAttention& attention, AttentionSite kind,
                                                StopFlag stop) {
  std::vector<PairHeadStatistics> heads;
  const std::int64_t count = attention_of(pass.architecture(), kind).query_heads;
  for (std::int64_t layer = 0; layer < pass.architecture().of(kind.stack).layers; ++layer) {
    for (std::int64_t head = 0; head < count; ++head) {
      require_time(stop);
      heads.push_back(pair_head_statistics(attention.pattern(kind, layer, head), kind));
      heads.back().layer = layer;
      heads.back().head = head;
    }
  }
  return heads;
}

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
      require_time(stop);
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
