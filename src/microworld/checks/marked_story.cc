#include "microworld/checks/marked_story.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace heed {
namespace {

// The tokens that overlap `span`. Positions in the story are one higher than in `offsets`, because
// <|endoftext|> precedes the text.
TokenRange tokens_of(const std::vector<TokenSpan>& offsets, const microworld::Span& span) {
  const auto first = std::ranges::upper_bound(offsets, span.begin, {}, &TokenSpan::end);
  const auto end = std::ranges::lower_bound(offsets, span.end, {}, &TokenSpan::begin);
  check(first < end, "a mark covers at least one token");
  return {first - offsets.begin() + 1, end - offsets.begin() + 1};
}

void normalise(std::span<float> row) {
  double sum = 0;
  for (const float share : row) sum += share;
  if (sum <= 0) return;
  for (float& share : row) share = static_cast<float>(share / sum);
}

}  // namespace

MarkedStory mark_story(const microworld::Story& story, const Tokenizer& tokenizer) {
  const auto end_of_text = tokenizer.end_of_text();
  require(end_of_text.has_value(), ErrorCode::invalid_argument,
          "the tokenizer has no <|endoftext|> token, which separates the stories");
  const std::vector<TokenSpan> offsets = tokenizer.encode_with_offsets(story.text);

  MarkedStory marked{.log_probability = story.log_probability};
  marked.tokens.push_back(*end_of_text);
  for (const TokenSpan& token : offsets) marked.tokens.push_back(token.id);
  marked.tokens.push_back(*end_of_text);

  for (const auto& sense : story.senses) {
    marked.senses.push_back(
        {sense.word, sense.sense, tokens_of(offsets, sense.span), sense.recalled});
  }
  for (const auto& mark : story.adjectives) {
    if (mark.adjectives.empty()) continue;
    MarkedStory::Noun noun{.at = tokens_of(offsets, mark.noun)};
    for (const auto& adjective : mark.adjectives) {
      noun.adjectives.push_back(tokens_of(offsets, adjective));
    }
    marked.nouns.push_back(std::move(noun));
  }
  for (const auto& mark : story.evidence) {
    MarkedStory::Evidence evidence{.subject = mark.subject,
                                   .word = tokens_of(offsets, mark.word),
                                   .answer = tokens_of(offsets, mark.answer)};
    for (const auto& span : mark.evidence) evidence.evidence.push_back(tokens_of(offsets, span));
    marked.evidence.push_back(std::move(evidence));
  }
  if (story.culprit) {
    marked.mystery = MarkedStory::Mystery{tokens_of(offsets, story.culprit->clue),
                                          tokens_of(offsets, story.culprit->answer)};
  }
  return marked;
}

void EdgeCutter::edit(const EditedPoint&, View<float> values) {
  const View<float> pattern = values[0][0];
  std::vector<bool> is_cut(static_cast<std::size_t>(pattern.extent(0)), false);
  for (const EdgeBlock& block : blocks_) {
    for (std::int64_t t = block.queries.begin; t < block.queries.end; ++t) {
      // Masked weights are zero already.
      for (std::int64_t s = block.keys.begin; s < std::min(block.keys.end, pattern.extent(1));
           ++s) {
        if (pattern(t, s) == 0) continue;
        pattern(t, s) = 0;
        is_cut[static_cast<std::size_t>(t)] = true;
      }
    }
  }
  for (std::int64_t t = 0; t < pattern.extent(0); ++t) {
    if (is_cut[static_cast<std::size_t>(t)]) normalise(pattern[t].span());
  }
}

}  // namespace heed
