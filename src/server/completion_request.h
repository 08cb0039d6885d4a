// The parsed request of POST /v1/completions or POST /v1/chat/completions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"
#include "server/chat_template.h"
#include "server/exchange.h"
#include "server/fields.h"
#include "server/sequence.h"

namespace heed::server {

// Prompts are a string, token ids, or a list of either.
struct PromptLimits {
  std::size_t most = 256;   // prompts in one request
  std::int64_t tokens = 0;  // of each
};

// Null, "" and an absent prompt are the beginning of a text, for models that have a token for it.
// Throws FieldError; `field` is the prompt's.
std::vector<std::vector<std::int32_t>> read_prompts(const Json* prompt, const LoadedModel& model,
                                                    const PromptLimits& limits, const char* field);

// Throws FieldError{context_length} if there are more tokens than fit.
void require_prompt_fits(const std::vector<std::int32_t>& tokens, const PromptLimits& limits,
                         const char* field);

inline constexpr std::int64_t default_max_tokens = 16;  // of a completion; a chat's is what fits

struct CompletionLimits {
  PromptLimits prompts{};        // prompts.tokens is the context, prompt and reply together
  std::int64_t choices = 128;    // `n` and `best_of`
  std::int64_t sequences = 256;  // prompts times candidates
};

struct CompletionRequest {
  std::vector<std::vector<std::int32_t>> prompts;
  std::int64_t choices = 1;     // of each prompt: `n`
  std::int64_t candidates = 1;  // that the choices are the best of: `best_of`
  bool echoes = false;
  bool streams = false;
  bool streams_usage = false;
  std::optional<std::int64_t> log_probabilities;  // number of most likely tokens at each position
  std::int64_t context = 0;                       // tokens of a prompt and its reply
  SequenceOptions sequence;                       // of every choice, but for its prompt and seed
  bool continues_message = false;    // the reply goes on with the last message of a chat
  std::vector<std::string> ignored;  // fields of a chat's messages: see ChatRequestPrompt

  // The seed of choice `index` of a prompt; a single request with this seed gives the same text.
  std::uint64_t seed_of(std::int64_t index) const {
    return sequence.sampling.seed + static_cast<std::uint64_t>(index);
  }

  // The requested number, or as many as fit; the last token of a reply needs no position in the
  // context.
  std::int64_t max_tokens_of(const std::vector<std::int32_t>& prompt) const {
    return std::min<std::int64_t>(sequence.max_tokens, context - std::ssize(prompt) + 1);
  }
};

// Both throw FieldError. A chat's `body` is the JSON text of its fields; once its template sees
// `stop` set, it throws Error{interrupted}.
CompletionRequest read_completion_request(const Fields& fields, const LoadedModel& model,
                                          const CompletionLimits& limits);
struct ChatRequestText {
  const Fields& fields;
  std::string_view body;
  StopFlag stop = nullptr;
};
CompletionRequest read_chat_request(const ChatRequestText& text, const LoadedModel& model,
                                    const ChatTemplate& chat_template,
                                    const CompletionLimits& limits);

}  // namespace heed::server
