// One continuation of a prompt, shared by the computing thread, which samples its tokens, and the
// connection's thread, which sends them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "generate/sampler.h"
#include "generate/text_stream.h"
#include "generate/token_scores.h"

namespace heed::server {

struct SequenceOptions {
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 16;
  SamplingOptions sampling{};
  std::vector<std::pair<std::int32_t, float>> logit_bias;  // added to these tokens' logits
  std::vector<std::string> stop_strings;
  std::vector<std::int32_t> stop_tokens;  // end the text as its end-of-text tokens do
  bool ignore_end_of_text = false;        // its own tokens for that are never sampled
  bool hides_special_tokens = true;  // leaves them out of the text; stop strings still find them
  std::int64_t min_tokens = 0;       // no token that ends the text is sampled before so many
  bool scores_prompt = false;        // the prompt's tokens, too
  std::optional<std::int64_t>
      top;  // number of most likely tokens at each position; none: no scores
  StopFlag stop = nullptr;
};

enum class SequenceEnd { stop, length };

// Wakes the thread that takes the pieces of several sequences.
class Notifier {
 public:
  void notify();
  // Returns once notified since the last call, or after a short time.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool notified_ = false;
};

class Sequence {
 public:
  // A sampled token. `text` is the text that is final after it, of this token or earlier ones.
  struct Piece {
    std::optional<std::int32_t> token{};  // none: text that was held back until the end
    std::string text{};
    std::optional<TokenScore> score{};
    bool is_end_of_text = false;  // the token ends the text and is no part of it
    bool is_hidden = false;       // a special token that is left out of the text
  };

  // `wake` tells the scheduler that a paused sequence may go on.
  Sequence(SequenceOptions options, std::shared_ptr<Notifier> notifier, std::function<void()> wake);

  // For the connection's thread. Takes all pieces so far; after the last one, throws the error that
  // ended the sequence.
  std::vector<Piece> take();
  // Set once it has ended and all pieces were taken.
  std::optional<SequenceEnd> end() const;
  std::int64_t drawn() const;
  // Scores of prompt[1:], complete once there is a piece or the end.
  const std::vector<TokenScore>& prompt_scores() const { return prompt_scores_; }
  // The client disconnected: nothing more will be taken.
  void abandon();

  // For the computing thread.
  const SequenceOptions& options() const { return options_; }
  bool wanted() const;    // neither abandoned nor stopped
  bool has_room() const;  // false: the client is too slow, and the sequence pauses
  void give_prompt_scores(std::vector<TokenScore> scores) { prompt_scores_ = std::move(scores); }
  void give(Piece piece);
  void finish(SequenceEnd end);
  void fail(std::exception_ptr error);

 private:
  const SequenceOptions options_;
  const std::shared_ptr<Notifier> notifier_;
  const std::function<void()> wake_;
  std::vector<TokenScore> prompt_scores_;
  mutable std::mutex mutex_;
  std::deque<Piece> pieces_;
  std::int64_t drawn_ = 0;
  bool abandoned_ = false;
  std::optional<SequenceEnd> end_;
  std::exception_ptr error_;
};

}  // namespace heed::server
