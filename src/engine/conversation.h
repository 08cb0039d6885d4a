// A conversation with a model, turn by turn, with one key-value cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/progress.h"
#include "engine/loaded_model.h"
#include "engine/model_chat.h"
#include "generate/generator.h"
#include "generate/session.h"

namespace heed {

struct ConversationOptions {
  std::string system;               // the first message; empty: none
  std::int64_t context = 0;         // tokens in all; 0: the model's context, at most 8,192
  std::int64_t max_new_tokens = 0;  // of a reply; 0: as many as fit
  SamplingOptions sampling{};
  CacheType cache_type = CacheType::f32;
};

struct ConversationReply {
  std::string text;
  FinishReason finish_reason = FinishReason::stop_token;
  std::int64_t prompt_tokens = 0;  // of the conversation so far
  std::int64_t read_tokens = 0;    // of them, those that the cache did not hold
  std::int64_t new_tokens = 0;
  std::int64_t forgotten = 0;  // messages that were left out from this turn on, to make room
};

class Conversation {
 public:
  // Borrows the model. Throws Error{not_found} without a tokenizer and Error{invalid_argument} for
  // options out of range.
  Conversation(const LoadedModel& model, ModelChat chat, const ConversationOptions& options);

  // Adds a message and generates the reply; `stream` receives its text piece by piece, without
  // special tokens. A reply that
  // is stopped, or ends where the context is full, stays in the conversation as far as it came. If
  // the conversation has no room for a reply, its oldest turns are left out. Throws
  // Error{invalid_argument}, without effect, for a message that does not fit by itself and for a
  // conversation that the template refuses; Error{diverged} if a logit is not a number.
  ConversationReply say(const std::string& message, StopFlag stop,
                        const std::function<void(std::string_view text)>& stream);

  const OrderedJson& messages() const { return messages_; }  // [{"role", "content"}]

 private:
  std::vector<std::int32_t> fitting_prompt(ChatPrompt& prompt, StopFlag stop,
                                           ConversationReply& reply) const;
  std::span<const float> read(std::span<const std::int32_t> prompt, StopFlag stop,
                              ConversationReply& reply);
  void write(std::vector<std::int32_t> history, std::span<const float> logits, StopFlag stop,
             const std::function<void(std::string_view text)>& stream, ConversationReply& reply);

  const LoadedModel& model_;
  ModelChat chat_;
  std::int64_t max_new_tokens_;
  std::size_t instructions_;  // messages that are never left out
  std::vector<std::int32_t> end_tokens_;
  std::vector<std::int32_t> special_tokens_;
  OrderedJson messages_ = OrderedJson::array();
  Session session_;
  Sampler sampler_;
};

}  // namespace heed
