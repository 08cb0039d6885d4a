// A model reading one sequence: what it has read stays in a key-value cache, so that going on costs
// only what is new.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/cache.h"
#include "model/gpt.h"

namespace heed {

class Session {
 public:
  // Borrows the model. Room for `capacity` positions, at most and by default the model's context,
  // keys and values held as `cache_type`.
  explicit Session(const Gpt& gpt);
  Session(const Gpt& gpt, std::int64_t capacity, CacheType cache_type = CacheType::f32);

  // Reads tokens behind those already read, in one pass, and returns the logits (V) of what follows
  // the last of them; they stay valid until the next call. Throws Error{invalid_argument}, and
  // leaves the session as it was, for no tokens, for an id outside the vocabulary and for more
  // tokens than there is room for.
  std::span<const float> feed(std::span<const std::int32_t> tokens, Probe* probe = nullptr);

  // The same, and the logits (T, V) of what follows each of the tokens.
  Tensor<float> feed_for_all_positions(std::span<const std::int32_t> tokens,
                                       Probe* probe = nullptr);

  // Forgets what was read from position `length` on. Throws Error{invalid_argument} for more
  // positions than were read.
  void truncate(std::int64_t length);
  void reset() { truncate(0); }

  // Who changes what is read from now on, borrowed; null: nobody. What was read with an editor
  // stays in the cache as it made it.
  void set_editor(Editor* editor) { editor_ = editor; }

  const Gpt& gpt() const { return gpt_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }  // everything read
  CacheType cache_type() const { return cache_.type(); }
  std::int64_t length() const { return cache_.length(); }
  std::int64_t capacity() const { return cache_.capacity(); }
  std::int64_t room() const { return capacity() - length(); }

 private:
  void check_tokens(std::span<const std::int32_t> tokens) const;
  void read(std::span<const std::int32_t> tokens, Probe* probe, const GptActivations& activations);

  // Of `positions` new ones, kept for the next time: new memory costs as much as reading it.
  const GptActivations& activations_for(std::int64_t positions);

  const Gpt& gpt_;
  KeyValueCache cache_;
  std::optional<GptActivations> prompt_;
  GptActivations step_;   // of a single position, kept so that decoding allocates nothing
  Tensor<float> logits_;  // (1, V)
  std::vector<std::int32_t> tokens_;
  Editor* editor_ = nullptr;
};

}  // namespace heed
