// Text generation from a prompt.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "generate/generator.h"
#include "generate/sampler.h"
#include "generate/session.h"
#include "generate/text_stream.h"
#include "model/architecture.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// Behaviour when the model's context is full.
enum class ContextOverflow {
  refuse,  // the generation ends; a longer prompt is an error
  // Learned positions cannot be shifted in the cache, so the cache is cleared and the last half of
  // the tokens is processed again at new positions. Of a longer prompt, the end is used.
  shift_window,
};

struct GenerateOptions {
  std::int64_t max_new_tokens = 128;
  SamplingOptions sampling{};
  CacheType cache_type = CacheType::f32;  // of the session created by generate()
  std::vector<std::string> stop_strings;  // end the text, excluded from it; need a tokenizer
  ContextOverflow overflow = ContextOverflow::refuse;
  bool ignore_end_of_text = false;         // never sample the end-of-text token
  std::vector<std::int32_t> end_tokens{};  // end the text, as the end of text of the model does
  StopFlag stop = nullptr;                 // checked before every token
  Probe* probe = nullptr;                  // observes every pass, starting with the prompt's
  Editor* editor = nullptr;                // edits every pass
};

enum class FinishReason {
  stop_token,    // the end-of-text token was sampled
  stop_string,   // a stop string was generated
  length,        // max_new_tokens were generated
  interrupted,   // the stop flag was set
  context_full,  // the context is full and may not shift
};

// "stop_token", "stop_string", "length", "interrupted", "context_full".
const char* finish_reason_name(FinishReason reason);

// A step of the generation. Views are valid during the call only.
struct GenerationEvent {
  std::optional<std::int32_t> token;  // sampled; absent if held-back text is released at the end
  std::string_view text;              // whole characters that are final now; may be empty
  std::span<const float> logits;      // (V) that the token was sampled from; empty without a token
};
using GenerationCallback = std::function<void(const GenerationEvent&)>;

struct GenerationTimings {
  std::int64_t prompt_tokens = 0;  // processed before the first sampled token
  double prompt_seconds = 0;
  std::int64_t generated_tokens = 0;
  double generate_seconds = 0;  // from the end of prompt processing to the end
};

struct GenerationResult {
  std::vector<std::int32_t> tokens;  // all sampled tokens, including one that ended the text
  std::string text;                  // all text passed to the callback; empty without a tokenizer
  FinishReason finish_reason = FinishReason::length;
  std::int64_t shifts = 0;  // number of context shifts
  GenerationTimings timings;
};

// Clears `session` and continues `prompt`. Without a tokenizer (null), returns tokens and no text.
// With one, samples only tokens that it has: a model's vocabulary may be padded. Throws
// Error{invalid_argument} for an empty prompt, ids outside the vocabulary, a prompt longer than the
// context without shifting, and invalid options.
GenerationResult generate(Session& session, const Tokenizer* tokenizer,
                          std::span<const std::int32_t> prompt, const GenerateOptions& options = {},
                          const GenerationCallback& callback = {});

// As many positions as a generation needs, at most the model's context.
std::int64_t session_capacity(const Transformer& model, std::int64_t prompt_tokens,
                              std::int64_t max_new_tokens);

// The same with a new session, no larger than needed.
GenerationResult generate(const Transformer& model, const Tokenizer* tokenizer,
                          std::span<const std::int32_t> prompt, const GenerateOptions& options = {},
                          const GenerationCallback& callback = {});

// `named` ones, the model's end of text and that of its tokenizer, if there is one: each once, in
// order.
std::vector<std::int32_t> all_end_tokens(const StackSpecification& config,
                                         const Tokenizer* tokenizer,
                                         std::vector<std::int32_t> named);

// A generation, token by token: generate() is a loop over it.
class Generation {
 public:
  // Borrows session, tokenizer (or null) and what the options borrow. Throws what generate() throws
  // for the options; begin() throws it for the prompt.
  Generation(Session& session, const Tokenizer* tokenizer, GenerateOptions options);
  ~Generation() { session_.set_editor(nullptr); }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Clears the session and reads the prompt.
  void begin(std::span<const std::int32_t> prompt);

  // Samples the next token. At the end, the last call reports text that was held back, if any, or
  // returns nothing; then finish_reason is set. Views of an event are valid until the next call.
  std::optional<GenerationEvent> next();

  // Whether the next call samples nothing.
  bool is_over() const;

  const GenerationResult& result() const { return result_; }
  GenerationResult take_result() { return std::move(result_); }

 private:
  class Stopwatch {
   public:
    double lap();

   private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

  // The logits to sample from, or why there are none.
  std::optional<FinishReason> advance();
  std::span<const float> shift();
  std::span<const float> allowed(std::span<const float> logits);
  bool is_end_of_text(std::int32_t token) const;
  GenerationEvent report(std::optional<std::int32_t> token, std::string text);
  std::optional<GenerationEvent> end(FinishReason reason);

  Session& session_;
  const Tokenizer* tokenizer_;
  GenerateOptions options_;
  Sampler sampler_;
  TextStream stream_;
  std::int64_t drawable_ = 0;              // tokens from this id on are never sampled
  std::vector<std::int32_t> end_of_text_;  // of the options, the model and the tokenizer
  std::vector<std::int32_t> history_;      // prompt and all sampled tokens
  std::vector<float> allowed_;
  std::span<const float> logits_;  // of the next token
  std::string text_;               // of the last event
  std::int64_t drawn_ = 0;
  std::optional<FinishReason> ending_;  // reported by the next call
  bool ended_ = false;
  Stopwatch stopwatch_;
  GenerationResult result_;
};

}  // namespace heed
