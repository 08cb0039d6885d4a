#include "generate/generator.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/error.h"
#include "generate/text_stream.h"

namespace heed {
namespace {

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One call of generate().
class Generation {
 public:
  Generation(Session& session, const Tokenizer* tokenizer, const GenerateOptions& options,
             const GenerationCallback& callback)
      : session_(session),
        tokenizer_(tokenizer),
        options_(options),
        callback_(callback),
        sampler_(options.sampling),
        stream_(options.stop_strings),
        end_of_text_(options.end_tokens) {
    require(options.max_new_tokens >= 0, ErrorCode::invalid_argument,
            "the number of new tokens must be 0 or more, not {}", options.max_new_tokens);
    require(tokenizer != nullptr || options.stop_strings.empty(), ErrorCode::invalid_argument,
            "stop strings need a tokenizer; the model has none");
    session.set_editor(options.editor);
    const StackSpecification& config = session.gpt().config();
    drawable_ = config.vocabulary_size;
    if (config.end_of_text >= 0) {
      end_of_text_.push_back(static_cast<std::int32_t>(config.end_of_text));
    }
    if (tokenizer != nullptr) {
      drawable_ = std::min<std::int64_t>(drawable_, tokenizer->vocabulary_size());
      if (tokenizer->end_of_text()) end_of_text_.push_back(*tokenizer->end_of_text());
    }
  }

  ~Generation() { session_.set_editor(nullptr); }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  GenerationResult run(std::span<const std::int32_t> prompt) {
    Stopwatch stopwatch;
    std::span<const float> logits = read_prompt(prompt);
    result_.timings.prompt_tokens = session_.length();
    result_.timings.prompt_seconds = stopwatch.lap();

    result_.finish_reason = continue_prompt(logits);
    if (!stream_.stopped()) release({}, stream_.finish(), {});
    result_.timings.generated_tokens = static_cast<std::int64_t>(result_.tokens.size());
    result_.timings.generate_seconds = stopwatch.lap();
    return std::move(result_);
  }

 private:
  std::span<const float> read_prompt(std::span<const std::int32_t> prompt) {
    session_.reset();
    const auto capacity = static_cast<std::size_t>(session_.capacity());
    const bool cut = options_.overflow == ContextOverflow::shift_window && prompt.size() > capacity;
    history_.assign(prompt.begin(), prompt.end());
    return session_.feed(cut ? prompt.last(capacity) : prompt, options_.probe);
  }

  FinishReason continue_prompt(std::span<const float> logits) {
    for (std::int64_t drawn = 0; drawn < options_.max_new_tokens; ++drawn) {
      // 1: make room and append the last sampled token
      if (drawn > 0) {
        if (session_.room() == 0 && options_.overflow == ContextOverflow::refuse) {
          return FinishReason::context_full;
        }
        logits = session_.room() == 0 ? shift() : session_.feed(last_token(), options_.probe);
      }
      if (stop_requested(options_.stop)) return FinishReason::interrupted;
      // 2: sample the next token
      const std::int32_t token = sampler_.sample(allowed(logits), history_);
      history_.push_back(token);
      result_.tokens.push_back(token);
      // 3: report it
      if (!options_.ignore_end_of_text && is_end_of_text(token)) {
        release(token, {}, logits);
        return FinishReason::stop_token;
      }
      release(token, tokenizer_ == nullptr ? "" : stream_.push(tokenizer_->token_bytes(token)),
              logits);
      if (stream_.stopped()) return FinishReason::stop_string;
    }
    return FinishReason::length;
  }

  std::span<const std::int32_t> last_token() const { return std::span(history_).last(1); }

  // Reprocesses the last half of the window, including the last sampled token.
  std::span<const float> shift() {
    const auto kept = static_cast<std::size_t>(std::max<std::int64_t>(session_.capacity() / 2, 1));
    ++result_.shifts;
    session_.reset();
    return session_.feed(std::span(history_).last(kept), options_.probe);
  }

  // The logits of tokens that may be sampled.
  std::span<const float> allowed(std::span<const float> logits) {
    logits = logits.first(static_cast<std::size_t>(drawable_));
    if (!options_.ignore_end_of_text || end_of_text_.empty()) return logits;
    allowed_.assign(logits.begin(), logits.end());
    for (const std::int32_t token : end_of_text_) {
      if (token < drawable_) {
        allowed_[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
      }
    }
    return allowed_;
  }

  bool is_end_of_text(std::int32_t token) const {
    return std::ranges::find(end_of_text_, token) != end_of_text_.end();
  }

  void release(std::optional<std::int32_t> token, const std::string& text,
               std::span<const float> logits) {
    result_.text += text;
    if (callback_ && (token || !text.empty())) {
      callback_({.token = token, .text = text, .logits = logits});
    }
  }

  Session& session_;
  const Tokenizer* tokenizer_;
  const GenerateOptions& options_;
  const GenerationCallback& callback_;
  Sampler sampler_;
  TextStream stream_;
  std::int64_t drawable_ = 0;              // tokens from this id on are never sampled
  std::vector<std::int32_t> end_of_text_;  // of the options, the model and the tokenizer
  std::vector<std::int32_t> history_;      // prompt and all sampled tokens
  std::vector<float> allowed_;
  GenerationResult result_;
};

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "stop_token";
    case FinishReason::stop_string: return "stop_string";
    case FinishReason::length: return "length";
    case FinishReason::interrupted: return "interrupted";
    case FinishReason::context_full: return "context_full";
  }
  return "unknown";
}

GenerationResult generate(Session& session, const Tokenizer* tokenizer,
                          std::span<const std::int32_t> prompt, const GenerateOptions& options,
                          const GenerationCallback& callback) {
  return Generation(session, tokenizer, options, callback).run(prompt);
}

GenerationResult generate(const Gpt& gpt, const Tokenizer* tokenizer,
                          std::span<const std::int32_t> prompt, const GenerateOptions& options,
                          const GenerationCallback& callback) {
  const std::int64_t context = gpt.config().context;
  const auto read = std::min<std::int64_t>(static_cast<std::int64_t>(prompt.size()), context);
  const auto drawn = std::clamp<std::int64_t>(options.max_new_tokens, 0, context);
  Session session(gpt, std::clamp<std::int64_t>(read + drawn, 1, context), options.cache_type);
  return generate(session, tokenizer, prompt, options, callback);
}

}  // namespace heed
