#include "generate/session.h"

#include <algorithm>

#include "base/error.h"
#include "model/input_checks.h"
#include "model/rotary.h"

namespace heed {
namespace {

std::int64_t checked_capacity(const Transformer& model, std::int64_t capacity) {
  require_predicts_next(model.specification(), "generation");
  require(capacity >= 1 && capacity <= model.specification().context, ErrorCode::invalid_argument,
          "the capacity of a session must be 1 to {} positions, the model's context, not {}",
          model.specification().context, capacity);
  return capacity;
}

}  // namespace

Session::Session(const Transformer& model) : Session(model, model.specification().context) {}

Session::Session(const Transformer& model, std::int64_t capacity, CacheType cache_type)
    : model_(model),
      cache_(model.specification(), 1, checked_capacity(model, capacity), cache_type,
             model.device()),
      step_(model.specification(), 1, 1, Keep::one_block, 0, model.device()),
      logits_(Shape{1, model.specification().vocabulary_size}),
      graph_(model) {
  tokens_.reserve(static_cast<std::size_t>(capacity));
}

std::span<const float> Session::feed(std::span<const std::int32_t> tokens, Probe* probe) {
  check_tokens(tokens);
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count == 1) return read_one(tokens.front(), probe, count);
  const StackActivations& activations = activations_for(count);
  read(tokens, probe, activations, count);
  model_.project(activations.final_norm().slice(0, count - 1, count), logits_);
  return logits_.span();
}

std::span<const float> Session::step(std::int32_t token, Probe* probe) {
  check_tokens({&token, 1});
  if (probe == nullptr && editor_ == nullptr && repeat_step(token)) return logits_.span();
  return read_one(token, probe, kernels::decoding_step);
}

bool Session::repeat_step(std::int32_t token) {
  const Sequences sequences = Sequences::next_of(cache_);
  if (!graph_.compute({.tokens = {&token, 1}, .sequences = sequences}, step_, logits_))
    return false;
  tokens_.push_back(token);
  return true;
}

Tensor<float> Session::feed_for_all_positions(std::span<const std::int32_t> tokens, Probe* probe) {
  check_tokens(tokens);
  const auto count = static_cast<std::int64_t>(tokens.size());
  Tensor<float> logits(Shape{count, model_.specification().vocabulary_size});
  const StackActivations& activations = activations_for(count);
  read(tokens, probe, activations, count);
  model_.project(activations.final_norm(), logits);
  return logits;
}

void Session::truncate(std::int64_t length) {
  require(length >= 0 && length <= this->length(), ErrorCode::invalid_argument,
          "a session of {} tokens cannot be truncated to {}", this->length(), length);
  cache_.truncate(length);
  tokens_.resize(static_cast<std::size_t>(length));
}

std::int64_t Session::reusable(std::int64_t shared, std::int64_t text_length) const {
  const AttentionSpecification& attention = model_.specification().block.attention;
  const std::int64_t longest = std::max(text_length, length());
  const bool turns_as_before =
      !turns_by_length(attention) || longest <= attention.rotary.scaling.original_context;
  return turns_as_before ? shared : 0;
}

const StackActivations& Session::activations_for(std::int64_t positions) {
  if (!prompt_ || prompt_->positions() != positions) {
    prompt_.emplace(model_.specification(), 1, positions, Keep::one_block, 0, model_.device());
  }
  return *prompt_;
}

void Session::check_tokens(std::span<const std::int32_t> tokens) const {
  require_tokens(tokens);
  const std::int64_t vocabulary_size = model_.specification().vocabulary_size;
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
                   const StackActivations& activations, std::int64_t arithmetic_length) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  model_.forward(View<const std::int32_t>(tokens.data(), {1, count}),
                 {.sequences = Sequences::next_of(cache_, count),
                  .length = arithmetic_length,
                  .text_length = text_length_,
                  .probe = probe,
                  .editor = editor_},
                 activations);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

std::span<const float> Session::read_one(std::int32_t token, Probe* probe,
                                         std::int64_t arithmetic_length) {
  read({&token, 1}, probe, step_, arithmetic_length);
  model_.project(step_.final_norm(), logits_, arithmetic_length);
  return logits_.span();
}

BatchSession::BatchSession(const Transformer& model, std::int64_t capacity, CacheType cache_type)
    : model_(model), capacity_(capacity), cache_type_(cache_type), graph_(model) {
  require_predicts_next(model.specification(), "generation");
  require(capacity >= 1 && capacity <= model.specification().context, ErrorCode::invalid_argument,
          "the capacity of a sequence must be 1 to {} positions, the model's context, not {}",
          model.specification().context, capacity);
}

std::int64_t BatchSession::begin(std::span<const std::int32_t> tokens, std::span<float> logits,
                                 std::int64_t positions, Probe* probe) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const auto free = std::find(caches_.begin(), caches_.end(), nullptr);
  const std::int64_t sequence = free - caches_.begin();
  require(count >= 1 && count <= capacity_, ErrorCode::invalid_argument,
          "a sequence starts with 1 to {} tokens, not {}", capacity_, count);
  check(static_cast<std::int64_t>(logits.size()) == model_.specification().vocabulary_size,
        "logits have the size of the vocabulary");
  for (std::int32_t token : tokens) check_token(token, sequence);

  const std::int64_t wanted = positions == 0 ? capacity_ : std::min(positions, capacity_);
  std::unique_ptr<KeyValueCache> cache = take_cache(std::max(wanted, count));
  const StackActivations activations(model_.specification(), 1, count, Keep::one_block, 0,
                                     model_.device());
  model_.forward(
      View<const std::int32_t>(tokens.data(), {1, count}),
      {.sequences = Sequences::next_of(*cache, count), .probe = probe, .editor = editor_},
      activations);
  model_.project(activations.final_norm().slice(0, count - 1, count),
                 View<float>(logits.data(), {1, model_.specification().vocabulary_size}));
  if (free == caches_.end()) {
    caches_.push_back(std::move(cache));
  } else {
    *free = std::move(cache);
  }
  return sequence;
}

// Reuses a spare cache that is large enough, or replaces a smaller one.
std::unique_ptr<KeyValueCache> BatchSession::take_cache(std::int64_t positions) {
  constexpr std::int64_t unit = 64;  // granularity of sizes, so that spare caches often fit
  const std::int64_t rounded = std::min((positions + unit - 1) / unit * unit, capacity_);
  const auto fits = [&](const auto& spare) { return spare->capacity() >= rounded; };
  const auto found = std::find_if(spare_.begin(), spare_.end(), fits);
  if (found == spare_.end()) {
    if (!spare_.empty()) spare_.pop_back();
    return std::make_unique<KeyValueCache>(model_.specification(), 1, rounded, cache_type_,
                                           model_.device());
  }
  std::unique_ptr<KeyValueCache> cache = std::move(*found);
  spare_.erase(found);
  cache->truncate(0);
  return cache;
}

void BatchSession::end(std::int64_t sequence) {
  cache_of(sequence);
  spare_.push_back(std::move(caches_[static_cast<std::size_t>(sequence)]));
}

void BatchSession::check_probe(const Probe* probe) const {
  if (probe == nullptr) return;
  for (std::int64_t layer = 0; layer < model_.specification().layers; ++layer) {
    for (const PointKind kind : {PointKind::scores, PointKind::pattern}) {
      require(!probe->wants({kind, layer}), ErrorCode::unsupported,
              "{} has no common shape in a batch of sequences of different lengths: trace them one "
              "by one",
              point_name({kind, layer}));
    }
    require(!probe->wants_attention(layer), ErrorCode::unsupported,
            "the attention of layer {} has no common shape in a batch of sequences of different "
            "lengths: trace them one by one",
            layer);
  }
}

View<const float> BatchSession::step(std::span<const Step> steps, Probe* probe) {
  const auto rows = static_cast<std::int64_t>(steps.size());
  require(rows > 0, ErrorCode::invalid_argument, "a step needs at least one sequence");
  check_probe(probe);
  std::vector<KeyValueCache*> caches;
  for (const Step& step : steps) {
    KeyValueCache& cache = cache_of(step.sequence);
    check_token(step.token, step.sequence);
    require(cache.length() < cache.capacity(), ErrorCode::invalid_argument,
            "sequence {} is full: it has {} tokens", step.sequence, cache.length());
    require(std::find(caches.begin(), caches.end(), &cache) == caches.end(),
            ErrorCode::invalid_argument, "sequence {} is repeated in one step", step.sequence);
    caches.push_back(&cache);
  }
  make_room(rows);
  tokens_.clear();
  for (const Step& step : steps) tokens_.push_back(step.token);
  const Sequences sequences = Sequences::next_of(caches);
  if (probe == nullptr && editor_ == nullptr &&
      graph_.compute({.tokens = tokens_, .sequences = sequences}, *activations_, logits_)) {
    return logits_.view();
  }
  model_.forward(
      View<const std::int32_t>(tokens_.data(), {rows, 1}),
      {.sequences = sequences, .length = kernels::decoding_step, .probe = probe, .editor = editor_},
      *activations_);
  model_.project(activations_->final_norm(), logits_, kernels::decoding_step);
  return logits_.view();
}

std::int64_t BatchSession::length(std::int64_t sequence) const {
  return cache_of(sequence).length();
}

std::int64_t BatchSession::active() const {
  return std::count_if(caches_.begin(), caches_.end(),
                       [](const auto& cache) { return cache != nullptr; });
}

KeyValueCache& BatchSession::cache_of(std::int64_t sequence) const {
  require(sequence >= 0 && sequence < static_cast<std::int64_t>(caches_.size()) &&
              caches_[static_cast<std::size_t>(sequence)] != nullptr,
          ErrorCode::invalid_argument, "there is no sequence {}", sequence);
  return *caches_[static_cast<std::size_t>(sequence)];
}

void BatchSession::check_token(std::int32_t token, std::int64_t sequence) const {
  require(token >= 0 && token < model_.specification().vocabulary_size, ErrorCode::invalid_argument,
          "token id {} of sequence {} is outside the model's vocabulary of {}", token, sequence,
          model_.specification().vocabulary_size);
}

// Activations are reallocated if the number of rows changes, which is rare compared to steps.
void BatchSession::make_room(std::int64_t rows) {
  if (rows == rows_) return;
  activations_ = std::make_unique<StackActivations>(model_.specification(), rows, 1,
                                                    Keep::one_block, 0, model_.device());
  logits_ = Tensor<float>(Shape{rows, model_.specification().vocabulary_size});
  rows_ = rows;
}

}  // namespace heed
