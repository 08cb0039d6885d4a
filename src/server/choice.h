// One choice of a reply as it grows: its text and the scores of its tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"
#include "generate/text_stream.h"
#include "server/sequence.h"

namespace heed::server {

class Choice {
 public:
  struct Options {
    bool has_log_probabilities = false;
    bool trims_start = false;  // leaves out white space before the first other character
  };

  struct ScoredToken {
    std::int64_t offset;  // of its text, in characters of the whole text
    TokenScore score;
    bool is_first = false;        // of the whole text: nothing predicts it
    bool is_end_of_text = false;  // no part of the text
  };

  // Returns what was added since the last call of take().
  struct Part {
    std::string text;
    std::vector<ScoredToken> tokens;
    std::optional<SequenceEnd> end;
  };

  // Borrows the model.
  Choice(const LoadedModel& model, Options options) : model_(model), options_(options) {}

  // Adds the prompt as the beginning of the text, with scores of its tokens from the second on.
  void echo(std::span<const std::int32_t> prompt, std::span<const TokenScore> scores);
  void add(const Sequence::Piece& piece);
  // Nothing follows.
  void finish(SequenceEnd end);

  Part take();

  // Whether take() would return anything new.
  bool has_unsent() const { return !text_.empty() || (end_ && !end_taken_); }
  double mean_log_probability() const { return tokens_ == 0 ? 0 : sum_ / tokens_; }

 private:
  std::int64_t offset_after(std::string_view bytes);

  const LoadedModel& model_;
  const Options options_;
  std::string text_;          // not yet taken
  bool has_begun_ = false;    // there was text that is not white space
  std::int64_t certain_ = 0;  // characters of all text so far
  TextStream decoded_;        // of all tokens, to count their characters
  std::int64_t decoded_characters_ = 0;
  std::deque<ScoredToken> scored_;  // not yet taken
  bool has_end_of_text_ = false;    // the model ended the text
  std::optional<SequenceEnd> end_;
  bool end_taken_ = false;
  double sum_ = 0;  // of drawn tokens' log-probabilities
  std::int64_t tokens_ = 0;
};

// A token's name in logprobs: its text, or "bytes:\xe2\x80" if its bytes are not valid UTF-8.
std::string token_name(const LoadedModel& model, std::int32_t token);

// "stop" or "length"; null until the text is complete.
OrderedJson finish_reason_json(std::optional<SequenceEnd> end);

}  // namespace heed::server
