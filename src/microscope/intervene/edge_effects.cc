#include "microscope/intervene/edge_effects.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "microscope/attention/visible_keys.h"

namespace heed {
namespace {

constexpr std::int64_t max_cut = 128;
constexpr std::size_t max_replaced = 12;
constexpr std::size_t other_words_read = 3;
constexpr std::size_t max_others = 16;  // edges of the same head
constexpr std::size_t tokens_told = 3;
constexpr double others_factor = 3;
constexpr double min_effect = 1.0 / 3;

class EdgeChoice {
 public:
  EdgeChoice(const Transformer& model, std::span<const std::int32_t> tokens,
             const EdgeQuestion& question, StopFlag stop)
      : config_(model.specification()),
        runs_(model, tokens, stop),
        tokens_(tokens),
        question_(question),
        keys_(question.keys),
        can_replace_(model.editor() == nullptr) {}

  std::optional<ShownEdge> choose() {
    cut_candidates();
    if (effects_.empty()) return std::nullopt;
    if (std::optional<ShownEdge> deciding = largest_that_decides()) return deciding;
    return told(*std::ranges::max_element(
        effects_, {}, [](const EdgeEffect& each) { return each.direct.value_or(each.cut); }));
  }

 private:
  double effect_of(const std::vector<double>& changed) const {
    return total_variation(runs_.probabilities(), changed);
  }

  // The tokens of each word that a head sees and gives some weight.
  std::vector<TokenRun> keys_of(const HeadName& head) const {
    const VisibleKeys seen =
        visible_keys(config_.block.attention, head.layer, runs_.query(), runs_.query() + 1);
    std::vector<TokenRun> visible;
    for (const TokenRun& key : keys_) {
      const TokenRun part{std::max(key.begin, seen.begin), key.end};
      if (part.begin < part.end && runs_.weight({head, part}) > 0) visible.push_back(part);
    }
    return visible;
  }

  bool is_asked(const AttentionEdge& edge) const {
    return (!question_.only || question_.only->end == edge.key.end) &&
           runs_.weight(edge) >= question_.min_weight;
  }

  // Of each layer as many, by what a cut changes of what the head mixes: streams of later layers
  // are longer, so that layers are not compared by it.
  std::vector<AttentionEdge> candidates() const {
    const std::int64_t of_layer = std::max<std::int64_t>(max_cut / config_.layers, 1);
    std::vector<AttentionEdge> all;
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      std::vector<std::pair<double, AttentionEdge>> ranked;
      for (std::int64_t head = 0; head < config_.heads(); ++head) {
        const std::vector<TokenRun> keys = keys_of({layer, head});
        const std::vector<double> changes = runs_.changes_by_cut({layer, head}, keys);
        for (std::size_t i = 0; i < keys.size(); ++i) {
          const AttentionEdge edge{{layer, head}, keys[i]};
          if (is_asked(edge)) ranked.emplace_back(changes[i], edge);
        }
      }
      std::ranges::stable_sort(ranked, std::greater{}, &std::pair<double, AttentionEdge>::first);
      ranked.resize(std::min(ranked.size(), static_cast<std::size_t>(of_layer)));
      for (const auto& [change, edge] : ranked) all.push_back(edge);
    }
    return all;
  }

  void cut_candidates() {
    std::vector<EdgeRuns::HeadChange> changes;
    const std::vector<AttentionEdge> edges = candidates();
    for (const AttentionEdge& edge : edges) {
      changes.push_back({edge.head, runs_.mixed_without(edge)});
    }
    const auto cut = runs_.read_without(edges);
    const auto direct = runs_.read_directly(changes);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      EdgeEffect effect{
          .edge = edges[i], .weight = runs_.weight(edges[i]), .cut = effect_of(cut[i])};
      if (!direct.empty()) effect.direct = effect_of(direct[i]);
      effects_.push_back(effect);
    }
    std::ranges::stable_sort(effects_, std::greater{}, &EdgeEffect::cut);
  }

  // Of the edges with the largest effects.
  std::optional<ShownEdge> largest_that_decides() {
    const auto enough = [](const EdgeEffect& each) {
      return std::min(each.cut, each.replaced.value_or(each.cut)) >= min_effect;
    };
    const auto few = std::span(effects_).first(std::min(effects_.size(), max_replaced));
    if (!enough(effects_.front())) return std::nullopt;
    replace(few);
    std::vector<EdgeEffect> ranked(few.begin(), few.end());
    std::ranges::stable_sort(ranked, std::greater{}, &EdgeEffect::score);
    for (const EdgeEffect& each : ranked) {
      if (!enough(each)) continue;
      ShownEdge shown = told(each);
      if (shown.decides()) return shown;
    }
    return std::nullopt;
  }

  // Other words are read from the last on: what is read of the text then stays.
  void replace(std::span<EdgeEffect> effects) {
    if (!can_replace_) return;
    std::map<std::int64_t, std::vector<EdgeEffect*>, std::greater<>> by_word;  // its begin
    for (EdgeEffect& each : effects) by_word[word_of(each.edge).begin].push_back(&each);
    std::vector<std::int32_t> firsts;  // of the words, for other words at the beginning
    for (const TokenRun& key : keys_) {
      firsts.push_back(tokens_[static_cast<std::size_t>(key.begin)]);
    }
    firsts.push_back(tokens_.back());
    for (const auto& [begin, edges] : by_word) {
      const TokenRun word = word_of(edges.front()->edge);
      const auto others = runs_.other_words(word, firsts, other_words_read);
      std::vector<EdgeRuns::HeadChange> changes;
      for (const EdgeEffect* const each : edges) {
        const AttentionEdge& edge = each->edge;
        for (const EdgeRuns::OtherWord& other : others) {
          const View<const float> values =
              other.values[static_cast<std::size_t>(edge.head.layer)].view();
          changes.push_back(
              {edge.head,
               runs_.mixed_with(edge, values.slice(0, edge.key.begin - begin, word.count()))});
        }
      }
      const auto changed = runs_.read(changes);
      for (std::size_t i = 0; i < changed.size(); ++i) {
        std::optional<double>& replaced = edges[i / others.size()]->replaced;
        replaced =
            replaced.value_or(0) + effect_of(changed[i]) / static_cast<double>(others.size());
      }
    }
  }

  // The word whose tokens, or visible tokens, an edge reads.
  const TokenRun& word_of(const AttentionEdge& edge) const {
    return *std::ranges::find(keys_, edge.key.end, &TokenRun::end);
  }

  // The edge, then others of its head.
  std::vector<AttentionEdge> with_others(const AttentionEdge& edge) const {
    std::vector<TokenRun> others = keys_of(edge.head);
    std::erase(others, edge.key);
    RandomStream random(1, 0);
    const std::size_t count = std::min(others.size(), max_others);
    std::vector<AttentionEdge> edges{edge};
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(others[i], others[i + random.below(others.size() - i)]);
      edges.push_back({edge.head, others[i]});
    }
    return edges;
  }

  ShownEdge told(EdgeEffect effect) {
    if (!effect.replaced) replace({&effect, 1});
    ShownEdge shown{.query = runs_.query(), .effect = effect};
    const auto changed = runs_.read_without(with_others(effect.edge));
    shown.others = changed.size() - 1;
    for (std::size_t i = 1; i < changed.size(); ++i) {
      shown.others_cut =
          shown.others_cut.value_or(0) + effect_of(changed[i]) / static_cast<double>(shown.others);
    }
    shown.threshold = std::max(min_effect, others_factor * shown.others_cut.value_or(0));
    shown.word_cut = effect_of(runs_.read_without_word(word_of(effect.edge)));
    tell_tokens(changed.front(), shown);
    shown.measured = effects_.size();
    shown.positions_read = runs_.positions_read();
    return shown;
  }

  void tell_tokens(const std::vector<double>& after, ShownEdge& shown) const {
    const std::vector<double>& before = runs_.probabilities();
    const auto change_of = [&](std::size_t token) {
      return TokenChange{static_cast<std::int32_t>(token), before[token], after[token]};
    };
    const auto likeliest = [](const std::vector<double>& probabilities) {
      return static_cast<std::size_t>(std::ranges::max_element(probabilities) -
                                      probabilities.begin());
    };
    shown.likeliest = change_of(likeliest(before));
    shown.likeliest_without = change_of(likeliest(after));
    std::vector<TokenChange> changes;
    for (std::size_t token = 0; token < before.size(); ++token) {
      if (after[token] > before[token]) changes.push_back(change_of(token));
    }
    const std::size_t told = std::min(changes.size(), tokens_told);
    std::ranges::partial_sort(changes, changes.begin() + static_cast<std::ptrdiff_t>(told),
                              std::greater{},
                              [](const TokenChange& each) { return each.after - each.before; });
    changes.resize(told);
    shown.gained = std::move(changes);
  }

  const StackSpecification& config_;
  EdgeRuns runs_;
  std::span<const std::int32_t> tokens_;
  const EdgeQuestion& question_;
  const std::vector<TokenRun>& keys_;
  bool can_replace_;
  std::vector<EdgeEffect> effects_;  // the largest first
};

}  // namespace

double EdgeEffect::score() const { return replaced ? std::sqrt(cut * *replaced) : cut; }

double total_variation(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / 2;
}

std::vector<TokenRun> token_runs(std::span<const TextWord> words) {
  std::vector<TokenRun> runs;
  for (const TextWord& word : words) runs.push_back({word.begin, word.end});
  return runs;
}

std::vector<TokenRun> single_tokens(std::int64_t count) {
  std::vector<TokenRun> runs;
  for (std::int64_t s = 0; s < count; ++s) runs.push_back({s, s + 1});
  return runs;
}

std::optional<ShownEdge> edge_to_show(const Transformer& model,
                                      std::span<const std::int32_t> tokens,
                                      const EdgeQuestion& question, StopFlag stop) {
  const TokenRun& word = question.word;
  require(word.begin >= 0 && word.begin < word.end && word.end <= std::ssize(tokens),
          ErrorCode::invalid_argument, "there is no word of tokens {} to {} in a text of {}",
          word.begin, word.end - 1, tokens.size());
  EdgeQuestion before = question;
  before.keys.clear();
  for (const TokenRun& key : question.keys) {
    const std::int64_t end = std::min(key.end, word.begin);
    if (key.begin < end) before.keys.push_back({key.begin, end});
  }
  const auto read = tokens.first(static_cast<std::size_t>(word.end));
  return EdgeChoice(model, read, before, stop).choose();
}

}  // namespace heed
