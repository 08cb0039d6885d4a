#include "generate/generator.h"

#include <algorithm>

#include "generate/generation.h"

namespace heed {

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
  Generation generation(session, tokenizer, options);
  generation.begin(prompt);
  while (const std::optional<GenerationEvent> event = generation.next()) {
    if (callback) callback(*event);
  }
  return generation.take_result();
}

std::int64_t session_capacity(const Gpt& gpt, std::int64_t prompt_tokens,
                              std::int64_t max_new_tokens) {
  const std::int64_t context = gpt.config().context;
  const std::int64_t drawn = std::clamp<std::int64_t>(max_new_tokens, 0, context);
  return std::clamp<std::int64_t>(std::min(prompt_tokens, context) + drawn, 1, context);
}

GenerationResult generate(const Gpt& gpt, const Tokenizer* tokenizer,
                          std::span<const std::int32_t> prompt, const GenerateOptions& options,
                          const GenerationCallback& callback) {
  Session session(gpt, session_capacity(gpt, std::ssize(prompt), options.max_new_tokens),
                  options.cache_type);
  return generate(session, tokenizer, prompt, options, callback);
}

}  // namespace heed
