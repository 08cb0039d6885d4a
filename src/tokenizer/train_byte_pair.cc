#include "tokenizer/train_byte_pair.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "tokenizer/byte_pair_tokenizer.h"
#include "tokenizer/merger.h"
#include "tokenizer/text_preparation.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

// Word counts of a corpus: the first step of training a byte-pair tokenizer.

struct WordCount {
  std::string_view word;  // borrows from the texts
  std::int64_t count = 0;
};

using Counts = std::unordered_map<std::string_view, std::int64_t>;

constexpr std::size_t counted_piece_bytes = 1024 * 1024;

// Parts of the texts between added tokens, cut at word boundaries into about counted_piece_bytes.
std::vector<std::string_view> cut_into_pieces(std::span<const std::string_view> texts,
                                              const AddedTokenMatcher& added) {
  std::vector<std::string_view> pieces;
  const auto cut = [&](std::string_view part) {
    while (!part.empty()) {
      std::size_t end = std::min(counted_piece_bytes, part.size());
      while (!is_word_boundary(part, end)) ++end;
      pieces.push_back(part.substr(0, end));
      part.remove_prefix(end);
    }
  };
  for (const std::string_view text : texts) {
    std::size_t begin = 0;
    for (const AddedTokenMatch& match : added.find_all(text)) {
      cut(text.substr(begin, match.begin - begin));
      begin = match.end;
    }
    cut(text.substr(begin));
  }
  return pieces;
}

// The words of all texts in lexicographic order, added tokens cut out; counted by all threads, with
// a result that does not depend on their number. Throws Error{interrupted} on request.
std::vector<WordCount> count_words(std::span<const std::string_view> texts,
                                   const AddedTokenMatcher& added, const ProgressCallback& progress,
                                   StopFlag stop) {
  const std::vector<std::string_view> pieces = cut_into_pieces(texts, added);
  Progress report{.what = "counting words"};
  for (const std::string_view piece : pieces)
    report.total += static_cast<std::int64_t>(piece.size());

  // A range of pieces has its own table; sums do not depend on the order of their parts.
  Counts all;
  std::mutex mutex;  // guards `all` and `report`
  parallel_ranges(
      static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t first, std::int64_t last) {
        Counts counts;
        std::int64_t unreported = 0;
        for (std::int64_t i = first; i < last; ++i) {
          require(!stop_requested(stop), ErrorCode::interrupted, "counting words was stopped");
          for_each_word(pieces[i], [&](std::size_t begin, std::size_t end) {
            ++counts[pieces[i].substr(begin, end - begin)];
          });
          unreported += static_cast<std::int64_t>(pieces[i].size());
          if (progress &&
              (unreported >= static_cast<std::int64_t>(counted_piece_bytes) || i + 1 == last)) {
            const std::lock_guard lock(mutex);
            report.done += unreported;
            unreported = 0;
            progress(report);
          }
        }
        const std::lock_guard lock(mutex);
        if (all.empty()) {
          all.swap(counts);
        } else {
          for (const auto& [word, count] : counts) all[word] += count;
        }
      });

  std::vector<WordCount> sorted;
  sorted.reserve(all.size());
  for (const auto& [word, count] : all) sorted.push_back({word, count});
  std::sort(sorted.begin(), sorted.end(),
            [](const WordCount& left, const WordCount& right) { return left.word < right.word; });
  return sorted;
}

// Learns merges from counted words: the second half of training a byte-pair tokenizer.
//
// All words are stored in one array of symbols, each linked to its neighbours in the word. For each
// pair of neighbours it keeps the count and the indices where the pair may occur, so that the cost
// of a merge is proportional to its occurrences.

class MergeLearner {
 public:
  // `reserved` are strings that no merge may make, since they are tokens already.
  MergeLearner(std::span<const WordCount> words, const std::array<std::int32_t, 256>& byte_ids,
               std::span<const std::string> reserved);

  // Merges the most frequent pair (of equals, the one of lower ids) into the token `next_id()`,
  // unless it occurs fewer than `min_frequency` times; then it returns false. A pair whose join is
  // a token already is never merged, so that every token has one derivation.
  bool learn_one(std::int64_t min_frequency);

  std::int32_t next_id() const { return static_cast<std::int32_t>(tokens_.size()); }
  std::vector<std::string>& tokens() { return tokens_; }  // bytes by id
  std::vector<MergeRule>& merges() { return merges_; }

 private:
  using Place = std::uint32_t;
  static constexpr Place none = UINT32_MAX;

  struct Symbol {
    std::int32_t id;  // -1: absorbed by the symbol before it
    Place before;
    Place after;
    std::uint32_t word;
  };
  struct PairUse {
    std::int64_t count = 0;     // occurrences; those that overlap ("aaa") count each
    std::vector<Place> places;  // of left symbols; some may be out of date
  };
  struct Candidate {
    std::int64_t count;
    TokenPair pair;
    // The largest is merged first.
    friend bool operator<(const Candidate& left, const Candidate& right) {
      if (left.count != right.count) return left.count < right.count;
      return right.pair < left.pair;
    }
  };

  void add_use(TokenPair pair, Place place, std::int64_t count);
  bool next_candidate(std::int64_t min_frequency, TokenPair& pair);
  void apply(MergeRule rule);

  std::vector<std::int64_t> word_counts_;
  std::vector<Symbol> symbols_;
  PairMap<PairUse> uses_;
  std::priority_queue<Candidate> candidates_;  // counts may be out of date, but never too low
  std::vector<TokenPair> touched_;             // pairs that the merge being applied makes
  std::vector<std::string> tokens_;
  std::unordered_set<std::string> known_;  // all of tokens_, and the reserved strings
  std::vector<MergeRule> merges_;
};

MergeLearner::MergeLearner(std::span<const WordCount> words,
                           const std::array<std::int32_t, 256>& byte_ids,
                           std::span<const std::string> reserved)
    : tokens_(256), known_(reserved.begin(), reserved.end()) {
  for (int byte = 0; byte < 256; ++byte) {
    tokens_[byte_ids[byte]] = std::string(1, static_cast<char>(byte));
    known_.insert(tokens_[byte_ids[byte]]);
  }
  std::size_t total = 0;
  for (const WordCount& word : words) total += word.word.size();
  require(total < none, ErrorCode::out_of_memory,
          "the distinct words of the texts have {} bytes; expected fewer than {}", total, none);
  symbols_.reserve(total);
  word_counts_.reserve(words.size());
  for (const WordCount& word : words) {
    const auto first = static_cast<Place>(symbols_.size());
    const auto last = static_cast<Place>(first + word.word.size() - 1);
    for (Place place = first; place <= last; ++place) {
      symbols_.push_back({byte_ids[static_cast<unsigned char>(word.word[place - first])],
                          place == first ? none : place - 1, place == last ? none : place + 1,
                          static_cast<std::uint32_t>(word_counts_.size())});
    }
    for (Place place = first; place < last; ++place) {
      add_use({symbols_[place].id, symbols_[place + 1].id}, place, word.count);
    }
    word_counts_.push_back(word.count);
  }
  for (const TokenPair pair : touched_) candidates_.push({uses_.find(pair)->count, pair});
  touched_.clear();
}

// The first use of a pair in a step puts it on touched_, to become a candidate when the step ends.
void MergeLearner::add_use(TokenPair pair, Place place, std::int64_t count) {
  auto [use, absent] = uses_.insert(pair);
  if (absent) touched_.push_back(pair);
  use.count += count;
  use.places.push_back(place);
}

bool MergeLearner::next_candidate(std::int64_t min_frequency, TokenPair& pair) {
  while (!candidates_.empty()) {
    Candidate candidate = candidates_.top();
    if (candidate.count < min_frequency) return false;
    candidates_.pop();
    const std::int64_t count = uses_.find(candidate.pair)->count;
    if (count != candidate.count) {
      candidates_.push({count, candidate.pair});
      continue;
    }
    if (known_.contains(tokens_[candidate.pair.left] + tokens_[candidate.pair.right])) continue;
    pair = candidate.pair;
    return true;
  }
  return false;
}

bool MergeLearner::learn_one(std::int64_t min_frequency) {
  TokenPair pair;
  if (!next_candidate(std::max<std::int64_t>(min_frequency, 1), pair)) return false;
  const MergeRule rule{pair.left, pair.right, next_id()};
  tokens_.push_back(tokens_[pair.left] + tokens_[pair.right]);
  known_.insert(tokens_.back());
  merges_.push_back(rule);
  apply(rule);
  return true;
}

void MergeLearner::apply(MergeRule rule) {
  PairUse merged;
  std::swap(merged, uses_.insert({rule.left, rule.right}).first);
  // From left to right, as encoding merges: "aaa" becomes "aa" "a".
  std::sort(merged.places.begin(), merged.places.end());
  for (const Place place : merged.places) {
    Symbol& left = symbols_[place];
    if (left.id != rule.left || left.after == none) continue;
    Symbol& right = symbols_[left.after];
    if (right.id != rule.right) continue;
    const std::int64_t count = word_counts_[left.word];
    if (left.before != none) {
      const std::int32_t before = symbols_[left.before].id;
      uses_.insert({before, rule.left}).first.count -= count;
      add_use({before, rule.result}, left.before, count);
    }
    if (right.after != none) {
      const std::int32_t after = symbols_[right.after].id;
      uses_.insert({rule.right, after}).first.count -= count;
      add_use({rule.result, after}, place, count);
      symbols_[right.after].before = place;
    }
    left.id = rule.result;
    left.after = right.after;
    right.id = -1;
  }
  // Overlapping occurrences leave a remainder in the count of the pair itself; none is left.
  uses_.insert({rule.left, rule.right}).first.count = 0;
  for (const TokenPair pair : touched_) candidates_.push({uses_.find(pair)->count, pair});
  touched_.clear();
}

constexpr std::int32_t byte_count = 256;

void check_options(const BytePairTrainingOptions& options) {
  const auto smallest = byte_count + static_cast<std::int64_t>(options.special_tokens.size());
  require(options.vocabulary_size >= smallest, ErrorCode::invalid_argument,
          "a vocabulary of {} tokens; expected at least {}: 256 bytes and {} special tokens",
          options.vocabulary_size, smallest, options.special_tokens.size());
  require(options.min_frequency >= 1, ErrorCode::invalid_argument,
          "min_frequency is {}; expected at least 1", options.min_frequency);
  std::set<std::string_view> seen;
  for (const std::string& token : options.special_tokens) {
    require(is_valid_utf8(token), ErrorCode::invalid_argument,
            "the special token {} is not valid UTF-8", in_quotes(token));
    const auto bytes = letters_to_bytes(token);
    require(!token.empty() && (!bytes || bytes->size() > 1), ErrorCode::invalid_argument,
            "the special token {} is empty or a single byte; expected a longer string",
            in_quotes(token));
    require(seen.insert(token).second, ErrorCode::invalid_argument,
            "the special token {} is given twice", in_quotes(token));
  }
  for (const auto* around : {&options.before_text, &options.after_text}) {
    for (const std::string& token : *around) {
      require(seen.contains(token), ErrorCode::invalid_argument,
              "the token {} of the template is not among the {} special tokens", in_quotes(token),
              options.special_tokens.size());
    }
  }
}

// What the special tokens stand for where files read them as byte letters.
std::vector<std::string> reserved_strings(const std::vector<std::string>& special_tokens) {
  std::vector<std::string> reserved;
  for (const std::string& token : special_tokens) {
    if (auto bytes = letters_to_bytes(token)) reserved.push_back(std::move(*bytes));
  }
  return reserved;
}

std::vector<AddedToken> as_added(const std::vector<std::string>& special_tokens,
                                 std::int32_t first_id) {
  std::vector<AddedToken> added;
  for (const std::string& token : special_tokens) {
    added.push_back({.id = first_id + static_cast<std::int32_t>(added.size()), .content = token});
  }
  return added;
}

// The ids of tokens that check_options() found.
std::vector<std::int32_t> ids_of(const std::vector<std::string>& tokens,
                                 const std::vector<AddedToken>& added) {
  std::vector<std::int32_t> ids;
  for (const std::string& token : tokens) {
    ids.push_back(std::ranges::find(added, token, &AddedToken::content)->id);
  }
  return ids;
}

// The learned tokens and the special ones, with ids as the options want them.
BytePairDefinition definition_of(MergeLearner& learner, const BytePairTrainingOptions& options) {
  const bool is_first = options.special_ids == SpecialTokenIds::first;
  const std::int32_t first_learned =
      is_first ? static_cast<std::int32_t>(options.special_tokens.size()) : 0;
  BytePairDefinition definition;
  definition.added = as_added(options.special_tokens, is_first ? 0 : learner.next_id());
  definition.tokens = std::move(learner.tokens());
  definition.tokens.insert(is_first ? definition.tokens.begin() : definition.tokens.end(),
                           options.special_tokens.begin(), options.special_tokens.end());
  definition.merges = std::move(learner.merges());
  for (MergeRule& merge : definition.merges) {
    merge.left += first_learned;
    merge.right += first_learned;
    merge.result += first_learned;
  }
  definition.text_template = {.before = ids_of(options.before_text, definition.added),
                              .after = ids_of(options.after_text, definition.added)};
  return definition;
}

}  // namespace

std::unique_ptr<BytePairTokenizer> train_byte_pair_tokenizer(
    std::span<const std::string_view> texts, const BytePairTrainingOptions& options,
    const ProgressCallback& progress, StopFlag stop) {
  check_options(options);
  const AddedTokenMatcher special(as_added(options.special_tokens, 0));
  const std::vector<WordCount> words = count_words(texts, special, progress, stop);

  std::array<std::int32_t, byte_count> byte_ids;
  for (std::int32_t id = 0; id < byte_count; ++id) byte_ids[bytes_by_letter()[id]] = id;
  MergeLearner learner(words, byte_ids, reserved_strings(options.special_tokens));

  const auto learned =
      options.vocabulary_size - static_cast<std::int32_t>(options.special_tokens.size());
  Progress report{.what = "learning merges", .total = learned - byte_count};
  while (learner.next_id() < learned && learner.learn_one(options.min_frequency)) {
    require(!stop_requested(stop), ErrorCode::interrupted, "learning merges was stopped");
    ++report.done;
    constexpr std::int64_t merges_a_report = 64;
    if (progress && report.done % merges_a_report == 0) progress(report);
  }
  report.total = report.done;
  if (progress) progress(report);

  return std::make_unique<BytePairTokenizer>(definition_of(learner, options),
                                             "the trained tokenizer");
}

std::unique_ptr<BytePairTokenizer> train_byte_pair_tokenizer(
    std::span<const std::filesystem::path> files, const BytePairTrainingOptions& options,
    const ProgressCallback& progress, StopFlag stop) {
  std::vector<MappedFile> mapped;
  std::vector<std::string_view> texts;
  for (const std::filesystem::path& file : files) {
    texts.push_back(mapped.emplace_back(file).text());
  }
  require(std::ranges::any_of(texts, [](std::string_view text) { return !text.empty(); }),
          ErrorCode::invalid_argument, "there is no text to learn from in '{}'",
          files.empty() ? "" : files.front().string());
  return train_byte_pair_tokenizer(texts, options, progress, stop);
}

std::unique_ptr<BytePairTokenizer> learn_joint_vocabulary(std::span<const std::string_view> texts,
                                                          const JointVocabularyOptions& options,
                                                          const ProgressCallback& progress,
                                                          StopFlag stop) {
  require(std::ranges::any_of(texts, [](std::string_view text) { return !text.empty(); }),
          ErrorCode::invalid_argument, "{} empty texts to learn a joint vocabulary from",
          texts.size());
  BytePairTrainingOptions training{.vocabulary_size = options.vocabulary_size,
                                   .special_tokens = {},
                                   .min_frequency = options.min_frequency,
                                   .special_ids = SpecialTokenIds::first,
                                   .after_text = {"</s>"}};
  training.special_tokens.assign(std::begin(joint_special_tokens), std::end(joint_special_tokens));
  training.special_tokens.insert(training.special_tokens.end(), options.special_tokens.begin(),
                                 options.special_tokens.end());
  return train_byte_pair_tokenizer(texts, training, progress, stop);
}

std::unique_ptr<BytePairTokenizer> learn_joint_vocabulary(
    std::span<const std::filesystem::path> files, const JointVocabularyOptions& options,
    const ProgressCallback& progress, StopFlag stop) {
  std::vector<MappedFile> mapped;
  std::vector<std::string_view> texts;
  for (const std::filesystem::path& file : files) {
    texts.push_back(mapped.emplace_back(file).text());
  }
  return learn_joint_vocabulary(texts, options, progress, stop);
}

}  // namespace heed
