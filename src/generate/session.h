// A model with the key-value cache of one sequence, so that appending tokens processes only the new
// ones.
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
  // Borrows the model. The capacity is at most and by default the model's context; keys and values
  // are stored as `cache_type`.
  explicit Session(const Gpt& gpt);
  Session(const Gpt& gpt, std::int64_t capacity, CacheType cache_type = CacheType::f32);

  // Appends tokens in one pass and returns the logits (V) of the next token, valid until the next
  // call. Throws Error{invalid_argument}, without effect, for no tokens, an id outside the
  // vocabulary and more tokens than the capacity.
  std::span<const float> feed(std::span<const std::int32_t> tokens, Probe* probe = nullptr);

  // The same of one token that was drawn: a step of decoding, which multiplies integer weights in
  // integers even where prompts do not (--f32-prompts).
  std::span<const float> step(std::int32_t token, Probe* probe = nullptr);

  // The same as feed(), with the logits (T, V) of all appended positions.
  Tensor<float> feed_for_all_positions(std::span<const std::int32_t> tokens,
                                       Probe* probe = nullptr);

  // Removes the positions from `length` on. Throws Error{invalid_argument} for more positions than
  // the session has.
  void truncate(std::int64_t length);
  void reset() { truncate(0); }

  // Says how many tokens the text will have that the next calls of feed() read in parts:
  // frequencies that depend on it (dynamic rotary scaling) are those of one call. 0: it ends with
  // each call. Keys in the cache keep the frequencies with which they were read.
  void expect(std::int64_t text_length) { text_length_ = text_length; }
  // How many of the first `shared` tokens in the cache a text of `text_length` tokens can be read
  // from, as if it was read anew: none where its frequencies are others.
  std::int64_t reusable(std::int64_t shared, std::int64_t text_length) const;

  // Sets the editor (borrowed, or null) of all following passes. Cached keys and values keep the
  // edits made when they were computed.
  void set_editor(Editor* editor) { editor_ = editor; }

  const Gpt& gpt() const { return gpt_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }  // all tokens of the sequence
  CacheType cache_type() const { return cache_.type(); }
  std::int64_t length() const { return cache_.length(); }
  std::int64_t capacity() const { return cache_.capacity(); }
  std::int64_t room() const { return capacity() - length(); }

 private:
  void check_tokens(std::span<const std::int32_t> tokens) const;
  // `projected_as`: of Pass.
  void read(std::span<const std::int32_t> tokens, Probe* probe, const GptActivations& activations,
            std::int64_t projected_as);
  // Reads one token and projects it.
  std::span<const float> read_one(std::int32_t token, Probe* probe, std::int64_t projected_as);

  // Activations for `positions` new positions, kept for reuse: touching new memory is slow.
  const GptActivations& activations_for(std::int64_t positions);

  const Gpt& gpt_;
  KeyValueCache cache_;
  std::optional<GptActivations> prompt_;
  GptActivations step_;   // of a single position, so that decoding does not allocate
  Tensor<float> logits_;  // (1, V)
  std::vector<std::int32_t> tokens_;
  Editor* editor_ = nullptr;
  std::int64_t text_length_ = 0;
};

}  // namespace heed
