// One choice of a reply as it grows: its text, and OpenAI's legacy logprobs of its tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "engine/loaded_model.h"
#include "generate/text_stream.h"
#include "server/exchange.h"
#include "server/sequence.h"

namespace heed::server {

// A token's name in logprobs: its text, or "bytes:\xE2\x80" where its bytes are no whole
// characters.
std::string token_name(const LoadedModel& model, std::int32_t token);

class Choice {
 public:
  // With or without logprobs. Borrows the model.
  Choice(const LoadedModel& model, bool has_log_probabilities)
      : model_(model), has_log_probabilities_(has_log_probabilities) {}

  // The prompt itself, as the beginning of the text; scores are of its tokens from the second on.
  void echo(std::span<const std::int32_t> prompt, std::span<const TokenScore> scores);
  void add(const Sequence::Piece& piece);
  // Nothing follows.
  void finish(SequenceEnd end);

  // What came since the last call: {"text", "index", "logprobs", "finish_reason"}.
  OrderedJson take(std::int64_t index);

  // Whether take() would bring anything.
  bool has_news() const { return !text_.empty() || (finish_reason_ && !told_end_); }
  double mean_log_probability() const { return tokens_ == 0 ? 0 : sum_ / tokens_; }

 private:
  struct Scored {
    std::int64_t offset;  // of its text, in characters of the whole text
    TokenScore score;
    bool is_first;  // which nothing predicts
  };
  std::int64_t offset_behind(std::int32_t token);
  OrderedJson take_log_probabilities();

  const LoadedModel& model_;
  const bool has_log_probabilities_;
  std::string text_;          // not yet taken
  std::int64_t certain_ = 0;  // characters of all text so far
  TextStream decoded_;        // of all tokens, to count their characters
  std::int64_t decoded_characters_ = 0;
  std::deque<Scored> scored_;  // not yet taken
  std::optional<SequenceEnd> finish_reason_;
  bool told_end_ = false;
  double sum_ = 0;  // of drawn tokens' log-probabilities
  std::int64_t tokens_ = 0;
};

}  // namespace heed::server
