#include "tokenizer/train_byte_pair.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "tokenizer/byte_letters.h"
#include "tokenizer/merge_learner.h"
#include "tokenizer/word_counts.h"

namespace heed {
namespace {

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

}  // namespace heed
