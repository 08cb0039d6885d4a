#include "generate/session.h"

#include <algorithm>

#include "base/error.h"
#include "model/input_checks.h"
#include "model/rotary.h"

namespace heed {
namespace {

std::int64_t checked_capacity(const Gpt& gpt, std::int64_t capacity) {
  require_predicts_next(gpt.config(), "generation");
  require(capacity >= 1 && capacity <= gpt.config().context, ErrorCode::invalid_argument,
          "the capacity of a session must be 1 to {} positions, the model's context, not {}",
          gpt.config().context, capacity);
  return capacity;
}

}  // namespace

Session::Session(const Gpt& gpt) : Session(gpt, gpt.config().context) {}

Session::Session(const Gpt& gpt, std::int64_t capacity, CacheType cache_type)
    : gpt_(gpt),
      cache_(gpt.config(), 1, checked_capacity(gpt, capacity), cache_type),
      step_(gpt.config(), 1, 1, Keep::one_block),
      logits_(Shape{1, gpt.config().vocabulary_size}) {
  tokens_.reserve(static_cast<std::size_t>(capacity));
}

std::span<const float> Session::feed(std::span<const std::int32_t> tokens, Probe* probe) {
  check_tokens(tokens);
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count == 1) return read_one(tokens.front(), probe, count);
  const GptActivations& activations = activations_for(count);
  read(tokens, probe, activations, count);
  gpt_.project(activations.final_norm().slice(0, count - 1, count), logits_);
  return logits_.span();
}

std::span<const float> Session::step(std::int32_t token, Probe* probe) {
  check_tokens({&token, 1});
  return read_one(token, probe, kernels::decoding_step);
}

Tensor<float> Session::feed_for_all_positions(std::span<const std::int32_t> tokens, Probe* probe) {
  check_tokens(tokens);
  const auto count = static_cast<std::int64_t>(tokens.size());
  Tensor<float> logits(Shape{count, gpt_.config().vocabulary_size});
  const GptActivations& activations = activations_for(count);
  read(tokens, probe, activations, count);
  gpt_.project(activations.final_norm(), logits);
  return logits;
}

void Session::truncate(std::int64_t length) {
  require(length >= 0 && length <= this->length(), ErrorCode::invalid_argument,
          "a session of {} tokens cannot be truncated to {}", this->length(), length);
  cache_.truncate(length);
  tokens_.resize(static_cast<std::size_t>(length));
}

std::int64_t Session::reusable(std::int64_t shared, std::int64_t text_length) const {
  const AttentionSpecification& attention = gpt_.config().block.attention;
  const std::int64_t longest = std::max(text_length, length());
  const bool turns_as_before =
      !turns_by_length(attention) || longest <= attention.rotary.scaling.original_context;
  return turns_as_before ? shared : 0;
}

const GptActivations& Session::activations_for(std::int64_t positions) {
  if (!prompt_ || prompt_->positions() != positions) {
    prompt_.emplace(gpt_.config(), 1, positions, Keep::one_block);
  }
  return *prompt_;
}

void Session::check_tokens(std::span<const std::int32_t> tokens) const {
  require_tokens(tokens);
  const std::int64_t vocabulary_size = gpt_.config().vocabulary_size;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    require(tokens[i] >= 0 && tokens[i] < vocabulary_size, ErrorCode::invalid_argument,
            "token id {} at position {} is outside the model's vocabulary of {}", tokens[i],
            length() + static_cast<std::int64_t>(i), vocabulary_size);
  }
  const auto count = static_cast<std::int64_t>(tokens.size());
  require(count <= room(), ErrorCode::invalid_argument,
          "{} tokens after {} in the cache exceed the context of {}: shorten the "
          "prompt or let the window shift",
          count, length(), capacity());
}

void Session::read(std::span<const std::int32_t> tokens, Probe* probe,
                   const GptActivations& activations, std::int64_t projected_as) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  gpt_.forward(View<const std::int32_t>(tokens.data(), {1, count}),
               {.batch = 1,
                .positions = count,
                .first_position = length(),
                .cache = &cache_,
                .projected_as = projected_as,
                .text_length = text_length_,
                .probe = probe,
                .editor = editor_},
               activations);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

std::span<const float> Session::read_one(std::int32_t token, Probe* probe,
                                         std::int64_t projected_as) {
  read({&token, 1}, probe, step_, projected_as);
  gpt_.project(step_.final_norm(), logits_, projected_as);
  return logits_.span();
}

}  // namespace heed
