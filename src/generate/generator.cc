#include "generate/generator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

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

std::int64_t session_capacity(const Transformer& model, std::int64_t prompt_tokens,
                              std::int64_t max_new_tokens) {
  const std::int64_t context = model.specification().context;
  const std::int64_t drawn = std::clamp<std::int64_t>(max_new_tokens, 0, context);
  return std::clamp<std::int64_t>(std::min(prompt_tokens, context) + drawn, 1, context);
}

GenerationResult generate(const Transformer& model, const Tokenizer* tokenizer,
                          std::span<const std::int32_t> prompt, const GenerateOptions& options,
                          const GenerationCallback& callback) {
  Session session(model, session_capacity(model, std::ssize(prompt), options.max_new_tokens),
                  options.cache_type);
  return generate(session, tokenizer, prompt, options, callback);
}

std::vector<std::int32_t> all_end_tokens(const StackSpecification& config,
                                         const Tokenizer* tokenizer,
                                         std::vector<std::int32_t> named) {
  if (config.end_of_text >= 0) named.push_back(static_cast<std::int32_t>(config.end_of_text));
  if (tokenizer != nullptr && tokenizer->end_of_text()) named.push_back(*tokenizer->end_of_text());
  std::ranges::sort(named);
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

double Generation::Stopwatch::lap() {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = now - start_;
  start_ = now;
  return passed.count();
}

Generation::Generation(Session& session, const Tokenizer* tokenizer, GenerateOptions options)
    : session_(session),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      sampler_(options_.sampling),
      stream_(options_.stop_strings),
      end_of_text_(
          all_end_tokens(session.model().specification(), tokenizer, options_.end_tokens)) {
  require(options_.max_new_tokens >= 0, ErrorCode::invalid_argument,
          "the number of new tokens must be 0 or more, not {}", options_.max_new_tokens);
  require(tokenizer != nullptr || options_.stop_strings.empty(), ErrorCode::invalid_argument,
          "stop strings need a tokenizer; the model has none");
  session.set_editor(options_.editor);
  drawable_ = session.model().specification().vocabulary_size;
  if (tokenizer != nullptr) {
    drawable_ = std::min<std::int64_t>(drawable_, tokenizer->vocabulary_size());
  }
}

void Generation::begin(std::span<const std::int32_t> prompt) {
  stopwatch_.lap();
  session_.reset();
  const auto capacity = static_cast<std::size_t>(session_.capacity());
  const bool cut = options_.overflow == ContextOverflow::shift_window && prompt.size() > capacity;
  history_.assign(prompt.begin(), prompt.end());
  logits_ = session_.feed(cut ? prompt.last(capacity) : prompt, options_.probe);
  result_.timings.prompt_tokens = session_.length();
  result_.timings.prompt_seconds = stopwatch_.lap();
}

std::optional<FinishReason> Generation::advance() {
  if (drawn_ == options_.max_new_tokens) return FinishReason::length;
  // Make room and append the last sampled token.
  if (drawn_ > 0) {
    if (session_.room() == 0 && options_.overflow == ContextOverflow::refuse) {
      return FinishReason::context_full;
    }
    logits_ = session_.room() == 0 ? shift() : session_.step(history_.back(), options_.probe);
  }
  if (stop_requested(options_.stop)) return FinishReason::interrupted;
  return std::nullopt;
}

bool Generation::is_over() const {
  return ending_ || drawn_ == options_.max_new_tokens ||
         (session_.room() == 0 && options_.overflow == ContextOverflow::refuse);
}

std::optional<GenerationEvent> Generation::next() {
  if (ended_) return std::nullopt;
  if (!ending_) ending_ = advance();
  if (ending_) return end(*ending_);
  ++drawn_;
  const std::int32_t token = sampler_.sample(allowed(logits_), history_);
  history_.push_back(token);
  result_.tokens.push_back(token);
  if (!options_.ignore_end_of_text && is_end_of_text(token)) {
    ending_ = FinishReason::stop_token;
    return report(token, {});
  }
  GenerationEvent event =
      report(token, tokenizer_ == nullptr ? "" : stream_.push(tokenizer_->token_bytes(token)));
  if (stream_.stopped()) ending_ = FinishReason::stop_string;
  return event;
}

std::optional<GenerationEvent> Generation::end(FinishReason reason) {
  ended_ = true;
  result_.finish_reason = reason;
  result_.timings.generated_tokens = static_cast<std::int64_t>(result_.tokens.size());
  result_.timings.generate_seconds = stopwatch_.lap();
  logits_ = {};
  if (stream_.stopped()) return std::nullopt;
  const GenerationEvent held_back = report({}, stream_.finish());
  return held_back.text.empty() ? std::nullopt : std::optional(held_back);
}

// Reprocesses the last half of the window, including the last sampled token.
std::span<const float> Generation::shift() {
  const auto kept = static_cast<std::size_t>(std::max<std::int64_t>(session_.capacity() / 2, 1));
  ++result_.shifts;
  session_.reset();
  return session_.feed(std::span(history_).last(kept), options_.probe);
}

// The logits of tokens that may be sampled.
std::span<const float> Generation::allowed(std::span<const float> logits) {
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

bool Generation::is_end_of_text(std::int32_t token) const {
  return std::ranges::find(end_of_text_, token) != end_of_text_.end();
}

GenerationEvent Generation::report(std::optional<std::int32_t> token, std::string text) {
  text_ = std::move(text);
  result_.text += text_;
  return {.token = token, .text = text_, .logits = token ? logits_ : std::span<const float>{}};
}

}  // namespace heed
