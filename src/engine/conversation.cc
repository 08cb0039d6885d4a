#include "engine/conversation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "engine/special_tokens.h"
#include "generate/text_stream.h"

namespace heed {
namespace {

constexpr std::int64_t max_default_context = 8192;
constexpr std::int64_t tokens_between_stops = 256;  // of a prompt that is processed

std::int64_t conversation_context(const LoadedModel& model, std::int64_t wanted) {
  const std::int64_t all = model.transformer.specification().context;
  if (wanted == 0) return std::min(all, max_default_context);
  require(wanted >= 2 && wanted <= all, ErrorCode::invalid_argument,
          "a conversation may have 2 to {} tokens, the model's context, not {}", all, wanted);
  return wanted;
}

// Where the turn after the one at `first` begins: a turn is a message of the user and the reply.
std::size_t second_turn(const OrderedJson& messages, std::size_t first) {
  for (std::size_t i = first + 1; i < messages.size(); ++i) {
    if (messages[i]["role"] == "user") return i;
  }
  return messages.size();
}

}  // namespace

Conversation::Conversation(const LoadedModel& model, ModelChat chat,
                           const ConversationOptions& options)
    : model_(model),
      chat_(std::move(chat)),
      max_new_tokens_(options.max_new_tokens > 0 ? options.max_new_tokens
                                                 : std::numeric_limits<std::int64_t>::max()),
      instructions_(options.system.empty() ? 0 : 1),
      end_tokens_(model.end_tokens()),
      special_tokens_(special_tokens(model)),
      session_(model.transformer, conversation_context(model, options.context), options.cache_type),
      sampler_(options.sampling) {
  model.require_tokenizer();
  require(options.max_new_tokens >= 0, ErrorCode::invalid_argument,
          "the number of new tokens must be 0 or more, not {}", options.max_new_tokens);
  if (instructions_ > 0) messages_.push_back({{"role", "system"}, {"content", options.system}});
}

ConversationReply Conversation::say(const std::string& message, StopFlag stop,
                                    const std::function<void(std::string_view text)>& stream) {
  ConversationReply reply;
  ChatPrompt asked{.messages = messages_};
  asked.messages.push_back({{"role", "user"}, {"content", message}});
  const std::vector<std::int32_t> prompt = fitting_prompt(asked, stop, reply);
  reply.prompt_tokens = std::ssize(prompt);
  const std::span<const float> logits = read(prompt, stop, reply);
  if (logits.empty()) {  // stopped
    reply.finish_reason = FinishReason::interrupted;
  } else {
    write(prompt, logits, stop, stream, reply);
  }
  asked.messages.push_back({{"role", "assistant"}, {"content", reply.text}});
  messages_ = std::move(asked.messages);
  return reply;
}

// Leaves out the oldest turns until an eighth of the context is free for the reply. Empty if it is
// stopped.
std::vector<std::int32_t> Conversation::fitting_prompt(ChatPrompt& asked, StopFlag stop,
                                                       ConversationReply& reply) const {
  OrderedJson& messages = asked.messages;
  const std::int64_t capacity = session_.capacity();
  const std::int64_t comfortable = capacity - std::max<std::int64_t>(capacity / 8, 1);
  while (true) {
    std::vector<std::int32_t> prompt;
    try {
      prompt = chat_.encode(asked, *model_.tokenizer, stop);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) return {};
      throw;
    }
    require(!prompt.empty(), ErrorCode::invalid_argument, "{} makes no text of this conversation",
            chat_.name());
    const std::size_t next = second_turn(messages, instructions_);
    if (std::ssize(prompt) <= comfortable) return prompt;
    if (next == messages.size()) {  // the message alone
      require(std::ssize(prompt) < capacity, ErrorCode::invalid_argument,
              "the message makes {} tokens, which leaves no room for a reply in the context of {}: "
              "shorten it",
              prompt.size(), capacity);
      return prompt;
    }
    reply.forgotten += static_cast<std::int64_t>(next - instructions_);
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(instructions_),
                   messages.begin() + static_cast<std::ptrdiff_t>(next));
  }
}

// Processes what the cache does not hold, and returns the logits of the next token; none if it is
// stopped.
std::span<const float> Conversation::read(std::span<const std::int32_t> prompt, StopFlag stop,
                                          ConversationReply& reply) {
  if (prompt.empty()) return {};
  const std::span<const std::int32_t> held = session_.tokens();
  const auto shared =
      std::ranges::mismatch(prompt.first(prompt.size() - 1), held).in2 - held.begin();
  const std::int64_t same = session_.reusable(shared, std::ssize(prompt));
  session_.truncate(same);
  session_.expect(std::ssize(prompt));
  prompt = prompt.subspan(static_cast<std::size_t>(same));
  reply.read_tokens = std::ssize(prompt);
  std::span<const float> logits;
  while (!prompt.empty()) {
    if (stop_requested(stop)) return {};
    const auto count = std::min<std::size_t>(prompt.size(), tokens_between_stops);
    logits = session_.feed(prompt.first(count));
    prompt = prompt.subspan(count);
  }
  session_.expect(0);
  return logits;
}

void Conversation::write(std::vector<std::int32_t> history, std::span<const float> logits,
                         StopFlag stop, const std::function<void(std::string_view text)>& stream,
                         ConversationReply& reply) {
  const auto drawable = static_cast<std::size_t>(std::min<std::int64_t>(
      model_.transformer.specification().vocabulary_size, model_.tokenizer->vocabulary_size()));
  TextStream text;
  const auto release = [&](const std::string& piece) {
    if (piece.empty()) return;
    reply.text += piece;
    if (stream) stream(piece);
  };
  while (true) {
    reply.finish_reason = FinishReason::interrupted;
    if (stop_requested(stop)) break;
    const std::int32_t token = sampler_.sample(logits.first(drawable), history);
    history.push_back(token);
    ++reply.new_tokens;
    reply.finish_reason = FinishReason::stop_token;
    if (std::ranges::binary_search(end_tokens_, token)) break;
    const std::string bytes = model_.token_bytes(token);
    const bool is_special = std::ranges::binary_search(special_tokens_, token);
    release(is_special ? text.push_hidden(bytes) : text.push(bytes));
    reply.finish_reason = FinishReason::length;
    if (reply.new_tokens >= max_new_tokens_) break;
    reply.finish_reason = FinishReason::context_full;
    if (session_.room() == 0) break;
    logits = session_.step(token);
  }
  release(text.finish());
}

}  // namespace heed
