// One continuation of a prompt, between the computing thread that draws its tokens and the
// connection's thread that sends them.
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
  bool ignore_end_of_text = false;
  bool scores_prompt = false;       // the prompt's own tokens too
  std::optional<std::int64_t> top;  // with so many likeliest at each place; none: no scores at all
  StopFlag stop = nullptr;
};

enum class SequenceEnd { stop, length };

// Tells the one thread that reads several sequences that some of them went on.
class News {
 public:
  void tell();
  // Returns once told since the last call, and now and then without.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false;
};

class Sequence {
 public:
  // What one draw brought. `text` is what became certain by it, of this token or earlier ones.
  struct Piece {
    std::optional<std::int32_t> token;  // none: text that was held back, released last
    std::string text;
    std::optional<TokenScore> score;
  };

  // `wake` tells the scheduler that it may go on with a sequence that it had to leave.
  Sequence(SequenceOptions options, std::shared_ptr<News> news, std::function<void()> wake);

  // For the connection's thread. Takes all pieces that are there; throws what went wrong behind the
  // last of them.
  std::vector<Piece> take();
  // Once it has ended and all was taken.
  std::optional<SequenceEnd> end() const;
  std::int64_t drawn() const;
  // Scores of prompt[1:], complete once a piece or the end is there.
  const std::vector<TokenScore>& prompt_scores() const { return prompt_scores_; }
  // Nobody will take more.
  void abandon();

  // For the computing thread.
  const SequenceOptions& options() const { return options_; }
  bool wanted() const;    // by somebody
  bool has_room() const;  // a reader that is too slow is waited for
  void give_prompt_scores(std::vector<TokenScore> scores) { prompt_scores_ = std::move(scores); }
  void give(Piece piece);
  void finish(SequenceEnd end);
  void fail(std::exception_ptr error);

 private:
  const SequenceOptions options_;
  const std::shared_ptr<News> news_;
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
