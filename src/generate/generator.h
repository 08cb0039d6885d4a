// Continuing a prompt, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "generate/sampler.h"
#include "generate/session.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// What happens when the model's context is full.
enum class ContextOverflow {
  refuse,  // generation ends; a prompt that is longer is an error
  // Learned positions cannot move, so the model forgets all and reads the last half again, at new
  // positions. Of a longer prompt it reads the end.
  shift_window,
};

struct GenerateOptions {
  std::int64_t max_new_tokens = 128;
  SamplingOptions sampling{};
  CacheType cache_type = CacheType::f32;  // of a session that generate() makes itself
  std::vector<std::string> stop_strings;  // end the text, and are no part of it; need a tokenizer
  ContextOverflow overflow = ContextOverflow::refuse;
  bool ignore_end_of_text = false;  // never draw the end-of-text token
  StopFlag stop = nullptr;          // looked at before every token
  Probe* probe = nullptr;           // sees every pass, the prompt's first
  Editor* editor = nullptr;         // changes every pass
};

enum class FinishReason {
  stop_token,    // the end-of-text token was drawn
  stop_string,   // the text reached a stop string
  length,        // max_new_tokens were drawn
  interrupted,   // the stop flag was set
  context_full,  // the context is full and may not shift
};

// "stop_token", "stop_string", "length", "interrupted", "context_full".
const char* finish_reason_name(FinishReason reason);

// A step of the generation. Everything is borrowed for the time of the call.
struct GenerationEvent {
  std::optional<std::int32_t> token;  // the token drawn; none when held-back text is released last
  std::string_view text;              // whole characters that are certain now; may be empty
  std::span<const float> logits;      // (V) that the token was drawn from; empty without a token
};
using GenerationCallback = std::function<void(const GenerationEvent&)>;

struct GenerationTimings {
  std::int64_t prompt_tokens = 0;  // read before the first draw
  double prompt_seconds = 0;
  std::int64_t generated_tokens = 0;
  double generate_seconds = 0;  // from the end of the prompt to the end of all
};

struct GenerationResult {
  std::vector<std::int32_t> tokens;  // all that were drawn, with the one that ended the text
  std::string text;                  // all that the callback was given; empty without a tokenizer
  FinishReason finish_reason = FinishReason::length;
  std::int64_t shifts = 0;  // how often the window moved
  GenerationTimings timings;
};

// Forgets what `session` has read and continues `prompt`. Without a tokenizer (null) there are
// tokens and no text. With one, only tokens that it has are drawn: a model may have more, to round
// its vocabulary up. Throws Error{invalid_argument} for an empty prompt, ids outside the
// vocabulary, a prompt too long that may not shift, and options that cannot be.
GenerationResult generate(Session& session, const Tokenizer* tokenizer,
                          std::span<const std::int32_t> prompt, const GenerateOptions& options = {},
                          const GenerationCallback& callback = {});

// The same with a session of its own, no larger than needed.
GenerationResult generate(const Gpt& gpt, const Tokenizer* tokenizer,
                          std::span<const std::int32_t> prompt, const GenerateOptions& options = {},
                          const GenerationCallback& callback = {});

}  // namespace heed
