#include "microscope/intervene/alignment_cuts.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/random.h"

namespace heed {
namespace {

// Tokens of the source words that a word of the target is linked to, ascending and distinct.
std::vector<std::int64_t> true_tokens(std::int64_t target, const PairWords& words,
                                      const scoring::TrueAlignment& truth) {
  std::vector<std::int64_t> tokens;
  for (const scoring::AlignmentLink& link : truth.sure) {
    if (link.target != target) continue;
    const TextWord& word = words.source[static_cast<std::size_t>(link.source)];
    for (std::int64_t s = word.begin; s < word.end; ++s) tokens.push_back(s);
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

// As many others of the first `count` tokens, drawn at random; none where there are too few.
std::vector<std::int64_t> other_tokens(const std::vector<std::int64_t>& taken, std::int64_t count,
                                       RandomStream& random) {
  std::vector<std::int64_t> others;
  for (std::int64_t s = 0; s < count; ++s) {
    if (!std::ranges::binary_search(taken, s)) others.push_back(s);
  }
  if (others.size() < taken.size()) return {};
  for (std::size_t i = 0; i < taken.size(); ++i) {
    std::swap(others[i], others[i + random.below(others.size() - i)]);
  }
  others.resize(taken.size());
  return others;
}

}  // namespace

std::vector<CutEdges::Edge> writing_edges(const TextWord& target_word,
                                          const std::vector<std::int64_t>& source_tokens) {
  const std::int64_t back = target_word.begin > 0 ? 1 : 0;
  std::vector<CutEdges::Edge> edges;
  for (std::int64_t t = target_word.begin - back; t < target_word.end - back; ++t) {
    for (const std::int64_t s : source_tokens) edges.push_back({t, s});
  }
  return edges;
}

WordProbability written_word(const RecordedPass& pass, const TextWord& word) {
  WordProbability written{.log = 0, .is_likeliest = true};
  for (std::int64_t t = word.begin; t < word.end; ++t) {
    const std::vector<double> next = pass.next_probabilities(t - 1);
    const auto token = pass.texts().target[static_cast<std::size_t>(t)];
    written.log += std::log(next[static_cast<std::size_t>(token)]);
    const auto likeliest = std::ranges::max_element(next) - next.begin();
    written.is_likeliest &= likeliest == token;
    if (t > word.begin) continue;
    written.first = static_cast<std::int32_t>(likeliest);
    written.first_probability = next[static_cast<std::size_t>(likeliest)];
  }
  return written;
}

WordProbability written_without(const RecordedPass& pass, const TextWord& word,
                                const std::vector<std::int64_t>& source_tokens) {
  const Architecture& architecture = pass.architecture();
  const CutEdges cut{writing_edges(word, source_tokens), CutEdges::Rest::renormalised};
  std::vector<Intervention> interventions;
  for (std::int64_t layer = 0; layer < architecture.decoder().layers; ++layer) {
    interventions.push_back({pattern_point(cross_site, layer), {}, cut});
  }
  const RecordedPass edited(pass.model(), pass.texts(),
                            std::make_shared<Interventions>(architecture, std::move(interventions)),
                            {.keep = Keep::one_block});
  return written_word(edited, word);
}

std::vector<WordCut> cut_alignments(const RecordedPass& pass, const PairWords& words,
                                    const scoring::TrueAlignment& truth,
                                    const AlignmentCutOptions& options) {
  for (const scoring::AlignmentLink& link : truth.sure) {
    require(link.target >= 0 && link.target < std::ssize(words.target) && link.source >= 0 &&
                link.source < std::ssize(words.source),
            ErrorCode::invalid_argument,
            "the link of source word {} and target word {} lies outside texts of {} and {} words",
            link.source, link.target, words.source.size(), words.target.size());
  }
  RandomStream random(options.seed, 0);
  std::vector<WordCut> cuts;
  for (std::int64_t target = 0; target < std::ssize(words.target); ++target) {
    const TextWord& word = words.target[static_cast<std::size_t>(target)];
    const std::vector<std::int64_t> own = true_tokens(target, words, truth);
    if (own.empty() || word.begin == 0) continue;
    const std::vector<std::int64_t> others =
        other_tokens(own, pass.sources() - options.last_tokens, random);
    if (others.empty()) continue;
    require(!stop_requested(options.stop), ErrorCode::interrupted,
            "interrupted while cutting edges");
    const WordProbability before = written_word(pass, word);
    const WordProbability without_true = written_without(pass, word, own);
    const WordProbability without_others = written_without(pass, word, others);
    cuts.push_back({.target = target,
                    .edges = std::ssize(own),
                    .before = before.log,
                    .without_true = without_true.log,
                    .without_others = without_others.log,
                    .is_written = before.is_likeliest,
                    .survives_true = before.is_likeliest && without_true.is_likeliest,
                    .survives_others = before.is_likeliest && without_others.is_likeliest});
  }
  return cuts;
}

}  // namespace heed
