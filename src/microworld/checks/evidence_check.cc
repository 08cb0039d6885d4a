#include "microworld/checks/evidence_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "base/error.h"
#include "microscope/explain/logit_lens.h"
#include "microworld/checks/marked_story.h"
#include "microworld/microworld.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// Stories to look for variants in: the rarest subject is in one of some hundred stories.
constexpr std::int64_t max_stories = 200'000;

constexpr std::size_t max_others = 64;  // variants of another reading

// A text up to the word, and the first token of the answer.
struct Variant {
  std::vector<std::int32_t> tokens;
  std::int32_t answer = 0;
  std::vector<TokenRange> evidence;
};

using VariantsBySubject = std::map<std::string, std::vector<Variant>>;

// The subjects that are measured, and variants of these and of other readings of the same words,
// whose evidence takes the place of theirs.
struct Collected {
  VariantsBySubject measured;
  VariantsBySubject others;
};

// "bank" of "bank/river": the word with several readings, or the subject itself.
std::string family_of(const std::string& subject) { return subject.substr(0, subject.find('/')); }

// The variant's text with the evidence of another in place of its own.
std::vector<std::int32_t> with_evidence_of(const Variant& variant, const Variant& other) {
  std::vector<std::int32_t> tokens;
  std::int64_t copied = 0;
  for (std::size_t word = 0; word < variant.evidence.size(); ++word) {
    const TokenRange& own = variant.evidence[word];
    const TokenRange& theirs = other.evidence[std::min(word, other.evidence.size() - 1)];
    tokens.insert(tokens.end(), variant.tokens.begin() + copied,
                  variant.tokens.begin() + own.begin);
    tokens.insert(tokens.end(), other.tokens.begin() + theirs.begin,
                  other.tokens.begin() + theirs.end);
    copied = own.end;
  }
  tokens.insert(tokens.end(), variant.tokens.begin() + copied, variant.tokens.end());
  return tokens;
}

Variant variant_of(const MarkedStory& story, const MarkedStory::Evidence& mark) {
  const auto word_end = story.tokens.begin() + mark.word.end;
  return {
      .tokens = {story.tokens.begin(), word_end}, .answer = *word_end, .evidence = mark.evidence};
}

Collected collect(const Tokenizer& tokenizer, std::int64_t context,
                  const EvidenceCheckOptions& options) {
  const microworld::Microworld world(options.seed);
  const auto needed = static_cast<std::size_t>(options.variants + options.choosing);
  Collected collected;
  VariantsBySubject& found = collected.measured;
  for (const std::string& subject : options.subjects) found[subject];
  const auto wanted = [&](const std::string& subject) {
    const auto known = found.find(subject);
    if (known == found.end()) return options.subjects.empty();
    return known->second.size() < needed;
  };
  const auto is_other_reading = [&](const std::string& subject) {
    if (collected.others[subject].size() >= max_others) return false;
    return std::ranges::any_of(found, [&](const auto& entry) {
      return entry.first != subject && family_of(entry.first) == family_of(subject);
    });
  };
  // Without a list of subjects, all are met early; the search ends when none of them lacks
  // variants.
  constexpr std::int64_t until_all_are_met = 5000;
  for (std::int64_t i = 0; i < max_stories; ++i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "interrupted");
    const bool complete = std::ranges::all_of(
        found, [&](const auto& entry) { return entry.second.size() >= needed; });
    if (complete && (!options.subjects.empty() || i >= until_all_are_met)) break;
    const microworld::Story story = world.story(i);
    if (std::ranges::none_of(story.evidence, [&](const auto& mark) {
          return wanted(mark.subject) || is_other_reading(mark.subject);
        })) {
      continue;
    }
    const MarkedStory marked = mark_story(story, tokenizer);
    for (const MarkedStory::Evidence& mark : marked.evidence) {
      if (mark.word.end > context) continue;
      if (wanted(mark.subject)) found[mark.subject].push_back(variant_of(marked, mark));
      if (is_other_reading(mark.subject)) {
        collected.others[mark.subject].push_back(variant_of(marked, mark));
      }
    }
  }
  for (const auto& [subject, variants] : found) {
    require(variants.size() >= needed, ErrorCode::not_found,
            "{} variants of '{}' in {} stories; expected {}", variants.size(), subject, max_stories,
            needed);
  }
  return collected;
}

double weight_on(const QueryRows& rows, const HeadName& head, const TokenRange& range) {
  return rows.weight(head, range.begin, range.end);
}

// Whether at most one token outside the range gets more than the range's heaviest.
bool is_prominent(std::span<const float> row, const TokenRange& range) {
  const auto begin = row.begin() + range.begin;
  const auto end = row.begin() + range.end;
  const float largest = *std::max_element(begin, end);
  const auto more = [&](float weight) { return weight > largest; };
  return std::count_if(row.begin(), begin, more) + std::count_if(end, row.end(), more) <= 1;
}

// Variants of the other readings of the subject's word or, where there is none, of the subject.
std::vector<Variant> other_evidence(const std::string& subject, const Collected& collected) {
  std::vector<Variant> others;
  for (const auto& [name, variants] : collected.others) {
    if (name == subject || family_of(name) != family_of(subject)) continue;
    others.insert(others.end(), variants.begin(), variants.end());
  }
  return others.empty() ? collected.measured.at(subject) : others;
}

class SubjectExamination {
 public:
  SubjectExamination(const Transformer& model, const std::string& subject,
                     const Collected& collected, const EvidenceCheckOptions& options)
      : SubjectExamination(model, subject, collected.measured.at(subject),
                           other_evidence(subject, collected), options) {}

  SubjectExamination(const Transformer& model, const std::string& subject,
                     const std::vector<Variant>& variants, std::vector<Variant> others,
                     const EvidenceCheckOptions& options)
      : model_(model),
        options_(options),
        others_(std::move(others)),
        choosing_(variants.begin(), variants.begin() + options.choosing),
        measured_(variants.begin() + options.choosing,
                  variants.begin() + options.choosing + options.variants) {
    check_.subject = subject;
    check_.variants = options.variants;
  }

  EvidenceCheck run() {
    choose_heads();
    const std::vector<HeadName> others = other_heads();
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      const Variant& variant = measured_[i];
      replace(variant, i);
      check_.isolated += probability_isolated(variant, 0);
      check_.others_isolated += probability_isolated(variant, 1);
      check_.probability += probability(variant, nullptr);
      check_.without_heads += probability_without(variant, check_.heads);
      check_.without_others += probability_without(variant, others);
      check_.without_edges += probability_without_edges(variant);
    }
    for (double* sum : {&check_.probability, &check_.without_heads, &check_.without_others,
                        &check_.without_edges, &check_.replaced, &check_.other_answer,
                        &check_.other_answer_replaced, &check_.isolated, &check_.others_isolated}) {
      *sum /= static_cast<double>(measured_.size());
    }
    check_.control_replaced /= static_cast<double>(check_.controls);  // NaN without any
    weigh();
    look_through_depth();
    return check_;
  }

 private:
  double probability(const Variant& variant, Editor* editor, Probe* probe = nullptr) const {
    require(!stop_requested(options_.stop), ErrorCode::interrupted, "interrupted");
    return answer_probability(model_, variant.tokens, variant.answer, editor, probe);
  }

  double probability_without(const Variant& variant, const std::vector<HeadName>& heads) const {
    require(!stop_requested(options_.stop), ErrorCode::interrupted, "interrupted");
    Interventions off = switching_off(model_.specification(), heads);
    return answer_probability(model_, variant.tokens, variant.answer, &off);
  }

  double probability_without_edges(const Variant& variant) const {
    const std::int64_t end = std::ssize(variant.tokens);
    std::vector<EdgeBlock> blocks;
    for (const TokenRange& evidence : variant.evidence) {
      blocks.push_back({.queries = {evidence.end, end}, .keys = evidence});
    }
    EdgeCutter cutter(blocks);
    return probability(variant, &cutter);
  }

  // The text with the evidence of the first variant of a list, from the `begin`-th on, that has
  // another answer, or the same one by other words; nothing where none fits.
  struct Replacement {
    std::vector<std::int32_t> tokens;
    std::int32_t answer = 0;  // after that evidence
  };
  enum class Answer { other, same };
  std::optional<Replacement> replacement(const Variant& variant, const std::vector<Variant>& from,
                                         std::size_t begin, Answer answer) const {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const Variant& other = from[(begin + i) % from.size()];
      if ((other.answer == variant.answer) != (answer == Answer::same)) continue;
      std::vector<std::int32_t> tokens = with_evidence_of(variant, other);
      if (std::ssize(tokens) > model_.specification().context || tokens == variant.tokens) continue;
      return Replacement{std::move(tokens), other.answer};
    }
    return std::nullopt;
  }

  void replace(const Variant& variant, std::size_t index) {
    const std::vector<double> before = next_token_probabilities(model_, variant.tokens);
    const auto of = [](const std::vector<double>& probabilities, std::int32_t answer) {
      return probabilities[static_cast<std::size_t>(answer)];
    };
    if (const auto other = replacement(variant, others_, index, Answer::other)) {
      const std::vector<double> after = next_token_probabilities(model_, other->tokens);
      check_.replaced += of(after, variant.answer);
      check_.other_answer += of(before, other->answer);
      check_.other_answer_replaced += of(after, other->answer);
    } else {
      check_.replaced += of(before, variant.answer);  // nothing else could be said
    }
    if (const auto same = replacement(variant, measured_, index, Answer::same)) {
      check_.control_replaced += answer_probability(model_, same->tokens, variant.answer);
      ++check_.controls;
    }
  }

  // With all edges cut from the evidence to what stands before it: it is then read by itself, and
  // what follows can no longer find it by what it belongs to.
  // `back` moves the cut: by as many tokens as the evidence has for 1.
  double probability_isolated(const Variant& variant, std::int64_t back) const {
    std::vector<EdgeBlock> blocks;
    for (const TokenRange& evidence : variant.evidence) {
      const std::int64_t length = evidence.end - evidence.begin;
      const std::int64_t begin = evidence.begin - back * length;
      if (begin > 0) blocks.push_back({.queries = {begin, begin + length}, .keys = {0, begin}});
    }
    EdgeCutter cutter(blocks);
    return probability(variant, &cutter);
  }

  // For each list of heads.
  std::vector<double> means_without(std::span<const std::vector<HeadName>> lists) const {
    std::vector<double> means(lists.size(), 0.0);
    std::vector<Interventions> off;
    for (const auto& heads : lists) off.push_back(switching_off(model_.specification(), heads));
    for (const Variant& variant : choosing_) {
      require(!stop_requested(options_.stop), ErrorCode::interrupted, "interrupted");
      const std::vector<double> without =
          answer_probabilities(model_, variant.tokens, variant.answer, off);
      for (std::size_t i = 0; i < means.size(); ++i) means[i] += without[i];
    }
    for (double& mean : means) mean /= static_cast<double>(choosing_.size());
    return means;
  }

  bool is_chosen(const HeadName& head) const {
    return std::ranges::find(check_.heads, head) != check_.heads.end();
  }

  void choose_heads() {
    const std::vector<HeadName> none;
    const double before = means_without({&none, 1}).front();
    check_.heads = heads_that_halve(model_.specification(), before, options_.max_heads,
                                    [&](const auto& lists) { return means_without(lists); })
                       .heads;
  }

  // As many heads of the same layers that were not chosen (of any layer where a layer has none).
  std::vector<HeadName> other_heads() const {
    std::vector<HeadName> others;
    const auto is_free = [&](const HeadName& head) {
      return !is_chosen(head) && std::ranges::find(others, head) == others.end();
    };
    for (const HeadName& chosen : check_.heads) {
      const std::vector<HeadName> all = all_heads(model_.specification());
      auto found = std::ranges::find_if(
          all, [&](const HeadName& head) { return head.layer == chosen.layer && is_free(head); });
      if (found == all.end()) found = std::ranges::find_if(all, is_free);
      if (found != all.end()) others.push_back(*found);
    }
    return others;
  }

  void weigh() {
    const std::size_t words = measured_.front().evidence.size();
    const std::vector<HeadName> heads = all_heads(model_.specification());
    std::vector<std::vector<double>> sums(words, std::vector<double>(heads.size(), 0.0));
    for (const Variant& variant : choosing_) {
      QueryRows rows(model_.specification(), std::ssize(variant.tokens) - 1);
      probability(variant, nullptr, &rows);
      for (std::size_t word = 0; word < words; ++word) {
        for (std::size_t head = 0; head < heads.size(); ++head) {
          sums[word][head] += weight_on(rows, heads[head], variant.evidence[word]);
        }
      }
    }
    std::vector<std::size_t> best;
    for (const std::vector<double>& sum : sums) {
      best.push_back(static_cast<std::size_t>(std::ranges::max_element(sum) - sum.begin()));
      check_.weights.push_back({.head = heads[best.back()]});
    }
    const auto count = static_cast<double>(measured_.size());
    for (const Variant& variant : measured_) {
      QueryRows rows(model_.specification(), std::ssize(variant.tokens) - 1);
      probability(variant, nullptr, &rows);
      for (std::size_t word = 0; word < words; ++word) {
        const HeadName& head = heads[best[word]];
        const TokenRange& range = variant.evidence[word];
        EvidenceWeight& weight = check_.weights[word];
        weight.share += weight_on(rows, head, range) / count;
        weight.even_share += static_cast<double>(range.end - range.begin) /
                             static_cast<double>(variant.tokens.size()) / count;
        weight.prominent += is_prominent(rows.row(head), range) ? 1 : 0;
      }
    }
    for (EvidenceWeight& weight : check_.weights) weight.prominent /= count;
  }

  void look_through_depth() {
    check_.right_by_depth.assign(static_cast<std::size_t>(model_.specification().layers + 1), 0.0);
    for (const Variant& variant : measured_) {
      const LogitLens lens = look_through_layers(
          model_, variant.tokens, {.top = 1, .positions = {std::ssize(variant.tokens) - 1}});
      for (std::size_t depth = 0; depth < check_.right_by_depth.size(); ++depth) {
        if (lens.cells[depth].top.front().token != variant.answer) continue;
        check_.right_by_depth[depth] += 1;
      }
    }
    for (double& right : check_.right_by_depth) right /= static_cast<double>(measured_.size());
  }

  const Transformer& model_;
  const EvidenceCheckOptions& options_;
  std::vector<Variant> others_;  // whose evidence replaces that of the measured
  std::vector<Variant> choosing_, measured_;
  EvidenceCheck check_;
};

}  // namespace

std::vector<EvidenceCheck> check_evidence(const Transformer& model, const Tokenizer& tokenizer,
                                          const EvidenceCheckOptions& options) {
  require_predicts_next(model.specification(), "evidence in the microworld");
  require(options.variants >= 1 && options.choosing >= 1, ErrorCode::invalid_argument,
          "{} variants to measure and {} to choose heads on: expected at least one of each",
          options.variants, options.choosing);
  require(tokenizer.vocabulary_size() <= model.specification().vocabulary_size,
          ErrorCode::invalid_argument, "the tokenizer has {} tokens, the model only {}",
          tokenizer.vocabulary_size(), model.specification().vocabulary_size);
  const Collected all = collect(tokenizer, model.specification().context, options);
  std::vector<EvidenceCheck> checks;
  for (const auto& [subject, variants] : all.measured) {
    checks.push_back(SubjectExamination(model, subject, all, options).run());
    if (options.progress) {
      options.progress({"measuring evidence", std::ssize(checks), std::ssize(all.measured)});
    }
  }
  return checks;
}

}  // namespace heed
