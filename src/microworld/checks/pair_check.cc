#include "microworld/checks/pair_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/threads.h"
#include "microscope/intervene/pair_effects.h"
#include "scoring/bleu.h"

namespace heed {
namespace {

constexpr std::int64_t pairs_at_once = 64;  // between reports of progress

struct CheckedPair {
  microworld::bilingual::Pair told;
  MarkedPair marked;
};

// Pairs one below the other, as Transformer takes them.
struct CheckedRows {
  std::vector<std::int32_t> source, target, next;
  std::vector<std::int64_t> source_starts{0}, target_starts{0};

  void add(const MarkedPair& pair) {
    source.insert(source.end(), pair.tokens.source.begin(), pair.tokens.source.end());
    target.insert(target.end(), pair.tokens.target.begin(), pair.tokens.target.end());
    next.insert(next.end(), pair.next.begin(), pair.next.end());
    source_starts.push_back(std::ssize(source));
    target_starts.push_back(std::ssize(target));
  }
  std::int64_t tokens() const { return std::max(std::ssize(source), std::ssize(target)); }
  PairBatch batch() const {
    return {.source = {source, source_starts}, .target = {target, target_starts}, .next = next};
  }
};

// What one pair adds to the sums.
struct PairFindings {
  std::string translation;
  bool is_grammatical = false;
  std::vector<HeadAlignment> heads;
  scoring::AlignmentCounts diagonal;
  std::vector<WordCut> cuts;
};

// Each linked word of the target with the word of the source that stands at the same part of it.
scoring::AlignmentCounts diagonal_counts(const MarkedPair& pair) {
  std::vector<scoring::AlignmentLink> found;
  const double sources = static_cast<double>(pair.source_words.size()) - 1;
  const double targets = std::max(static_cast<double>(pair.target_words.size()) - 1, 1.0);
  for (std::int32_t target = 0; target < std::ssize(pair.target_words); ++target) {
    const auto links_it = [&](const scoring::AlignmentLink& link) { return link.target == target; };
    if (std::ranges::none_of(pair.truth.sure, links_it) &&
        std::ranges::none_of(pair.truth.possible, links_it)) {
      continue;
    }
    found.push_back({static_cast<std::int32_t>(std::lround(target * sources / targets)), target});
  }
  return scoring::count_links(found, pair.truth);
}

class CutSums {
 public:
  void add(const WordCut& cut) {
    ++words_;
    right_ += cut.is_written ? 1 : 0;
    without_true_ += cut.survives_true ? 1 : 0;
    without_others_ += cut.survives_others ? 1 : 0;
    log_ += cut.before;
    log_without_true_ += cut.without_true;
    log_without_others_ += cut.without_others;
  }

  PairCuts report() const {
    const auto mean = [&](double sum) {
      return words_ > 0 ? sum / static_cast<double>(words_)
                        : std::numeric_limits<double>::quiet_NaN();
    };
    return {.words = words_,
            .right = mean(right_),
            .without_true = mean(without_true_),
            .without_others = mean(without_others_),
            .probability = std::exp(mean(log_)),
            .probability_without_true = std::exp(mean(log_without_true_)),
            .probability_without_others = std::exp(mean(log_without_others_))};
  }

 private:
  std::int64_t words_ = 0;
  double right_ = 0, without_true_ = 0, without_others_ = 0;
  double log_ = 0, log_without_true_ = 0, log_without_others_ = 0;
};

class PairExamination {
 public:
  PairExamination(const Transformer& model, const TranslationTokenizers& tokenizers,
                  const PairCheckOptions& options)
      : model_(model), tokenizers_(tokenizers), options_(options) {
    const microworld::bilingual::Bilingual world(options.seed);
    for (std::int64_t i = 0; i < options.pairs; ++i) {
      microworld::bilingual::Pair told = world.pair(i);
      MarkedPair marked = mark_pair(told, model.architecture(), tokenizers);
      require_texts_fit(model.architecture(), marked.tokens);
      pairs_.push_back({std::move(told), std::move(marked)});
    }
  }

  PairCheck report() {
    PairCheck check;
    static_cast<PairLoss&>(check) = loss();
    check.pairs = options_.pairs;
    check.cut_pairs = std::min(options_.cut_pairs, options_.pairs);
    measure_each(check);
    return check;
  }

  PairLoss loss() const {
    PairBuffers buffers(model_.architecture(), Keep::one_block, model_.device());
    double loss = 0, log_probability = 0;
    CheckedRows rows;
    const auto read = [&] {
      require(!stop_requested(options_.stop), ErrorCode::interrupted, "interrupted");
      if (rows.tokens() > 0) loss += model_.loss(rows.batch(), buffers).sum;
      rows = {};
    };
    for (const CheckedPair& pair : pairs_) {
      rows.add(pair.marked);
      log_probability += pair.marked.log_probability;
      if (rows.tokens() >= options_.batch_tokens) read();
    }
    read();
    const auto count = static_cast<double>(options_.pairs);
    return {.loss_nats_per_pair = loss / count, .entropy_nats_per_pair = -log_probability / count};
  }

 private:
  PairFindings examine(std::int64_t index) const {
    require(!stop_requested(options_.stop), ErrorCode::interrupted, "interrupted");
    const auto& [told, pair] = pairs_[static_cast<std::size_t>(index)];
    PairFindings found;
    const GreedyTranslation greedy = translate_greedily(
        model_, pair.tokens.source,
        {.max_length = model_.architecture().decoder().context - 1, .stop = options_.stop});
    found.translation = tokenizers_.target->decode(greedy.tokens, {.special_tokens = false});
    found.is_grammatical =
        microworld::bilingual::read_pair(told.english.text, found.translation).has_value();
    const RecordedPass pass(model_, pair.tokens);
    RecordedAttention attention(pass);
    found.heads = head_alignments(pass, attention, pair.words(), pair.truth, WordRow::written);
    found.diagonal = diagonal_counts(pair);
    if (index < options_.cut_pairs) {
      found.cuts = cut_alignments(
          pass, pair.words(), pair.truth,
          {.seed = options_.seed + static_cast<std::uint64_t>(index), .stop = options_.stop});
    }
    return found;
  }

  void measure_each(PairCheck& check) const {
    std::vector<PairFindings> findings(pairs_.size());
    for (std::int64_t begin = 0; begin < check.pairs; begin += pairs_at_once) {
      const std::int64_t end = std::min(begin + pairs_at_once, check.pairs);
      parallel_items(end - begin, [&](std::int64_t i) {
        findings[static_cast<std::size_t>(begin + i)] = examine(begin + i);
      });
      if (options_.progress) options_.progress({"examining pairs", end, check.pairs});
    }
    sum_translations(findings, check);
    sum_alignments(findings, check);
    sum_cuts(findings, check);
  }

  void sum_translations(const std::vector<PairFindings>& findings, PairCheck& check) const {
    std::vector<std::string> translations, references;
    double exact = 0, grammatical = 0;
    for (std::size_t i = 0; i < findings.size(); ++i) {
      translations.push_back(findings[i].translation);
      references.push_back(pairs_[i].told.german.text);
      exact += translations.back() == references.back() ? 1 : 0;
      grammatical += findings[i].is_grammatical ? 1 : 0;
    }
    const std::vector<std::vector<std::string>> sets{references};
    check.bleu = scoring::corpus_bleu(translations, sets).score;
    check.exact = exact / static_cast<double>(check.pairs);
    check.grammatical = grammatical / static_cast<double>(check.pairs);
  }

  static void sum_alignments(const std::vector<PairFindings>& findings, PairCheck& check) {
    scoring::AlignmentCounts diagonal;
    check.heads = findings.front().heads;
    for (HeadAlignment& head : check.heads) head.counts = {};
    for (const PairFindings& found : findings) {
      diagonal += found.diagonal;
      for (std::size_t h = 0; h < check.heads.size(); ++h) {
        check.heads[h].counts += found.heads[h].counts;
      }
    }
    check.diagonal_error_rate = diagonal.error_rate();
    std::ranges::stable_sort(check.heads, {},
                             [](const HeadAlignment& head) { return head.counts.error_rate(); });
  }

  void sum_cuts(const std::vector<PairFindings>& findings, PairCheck& check) const {
    CutSums all, content;
    for (std::size_t i = 0; i < findings.size(); ++i) {
      for (const WordCut& cut : findings[i].cuts) {
        all.add(cut);
        if (pairs_[i].marked.is_content[static_cast<std::size_t>(cut.target)]) content.add(cut);
      }
    }
    check.all_words = all.report();
    check.content_words = content.report();
  }

  const Transformer& model_;
  const TranslationTokenizers& tokenizers_;
  const PairCheckOptions& options_;
  std::vector<CheckedPair> pairs_;
};

PairExamination examination(const Transformer& model, const TranslationTokenizers& tokenizers,
                            const PairCheckOptions& options) {
  require(options.pairs >= 1, ErrorCode::invalid_argument, "{} pairs: expected at least one",
          options.pairs);
  return {model, tokenizers, options};
}

namespace bilingual = microworld::bilingual;

// The tokens that overlap each word; `shift` tokens stand before those of the text.
std::vector<TextWord> marked_words(const bilingual::WrittenSentence& sentence,
                                   const std::vector<TokenSpan>& offsets, std::int64_t shift) {
  std::vector<TextWord> words;
  for (const bilingual::WrittenWord& word : sentence.words) {
    const auto first = std::ranges::upper_bound(offsets, word.span.begin, {}, &TokenSpan::end);
    const auto end = std::ranges::lower_bound(offsets, word.span.end, {}, &TokenSpan::begin);
    check(first < end, "a word has at least one token");
    words.push_back({std::string(word.span.in(sentence.text)), first - offsets.begin() + shift,
                     end - offsets.begin() + shift});
  }
  return words;
}

std::vector<scoring::AlignmentLink> marked_links(const std::vector<bilingual::Link>& links) {
  std::vector<scoring::AlignmentLink> marked;
  for (const bilingual::Link& link : links) {
    marked.push_back(
        {static_cast<std::int32_t>(link.english), static_cast<std::int32_t>(link.german)});
  }
  return marked;
}

}  // namespace

PairLoss pair_loss(const Transformer& model, const TranslationTokenizers& tokenizers,
                   const PairCheckOptions& options) {
  return examination(model, tokenizers, options).loss();
}

PairCheck check_pairs(const Transformer& model, const TranslationTokenizers& tokenizers,
                      const PairCheckOptions& options) {
  return examination(model, tokenizers, options).report();
}

MarkedPair mark_pair(const bilingual::Pair& pair, const Architecture& architecture,
                     const TranslationTokenizers& tokenizers) {
  const std::int64_t start = architecture.decoder_start, end = architecture.decoder().end_of_text;
  require(start >= 0 && end >= 0, ErrorCode::invalid_argument,
          "this model does not say with which tokens its decoder starts and ends ({} and {})",
          start, end);
  const std::vector<TokenSpan> source = tokenizers.source->encode_with_offsets(
      pair.english.text, {.add_beginning = true, .add_ending = true});
  std::vector<TokenSpan> target =
      tokenizers.target->encode_with_offsets(pair.german.text, {.add_beginning = true});
  if (!target.empty() && target.front().id == start) target.erase(target.begin());

  MarkedPair marked{.tokens = {.source = {}, .target = {static_cast<std::int32_t>(start)}},
                    .next = {},
                    .source_words = marked_words(pair.english, source, 0),
                    .target_words = marked_words(pair.german, target, 1),
                    .is_content = {},
                    .truth = {marked_links(pair.sure), marked_links(pair.possible)},
                    .log_probability = pair.german_log_probability};
  for (const TokenSpan& token : source) marked.tokens.source.push_back(token.id);
  for (const TokenSpan& token : target) {
    marked.tokens.target.push_back(token.id);
    marked.next.push_back(token.id);
  }
  marked.next.push_back(static_cast<std::int32_t>(end));
  for (const bilingual::WrittenWord& word : pair.german.words) {
    marked.is_content.push_back(word.word.content);
  }
  return marked;
}

}  // namespace heed
