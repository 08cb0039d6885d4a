// A generation, token by token: generate() is a loop over it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generate/generator.h"
#include "generate/text_stream.h"

namespace heed {

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
