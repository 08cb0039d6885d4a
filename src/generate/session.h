// A model with the key-value cache of one sequence, so that appending tokens processes only the new
// ones; and with those of many.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "generate/decoding_graph.h"
#include "model/cache.h"
#include "model/transformer.h"

namespace heed {

class Session {
 public:
  // Borrows the model. The capacity is at most and by default the model's context; keys and values
  // are stored as `cache_type`.
  explicit Session(const Transformer& model);
  Session(const Transformer& model, std::int64_t capacity, CacheType cache_type = CacheType::f32);

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

  const Transformer& model() const { return model_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }  // all tokens of the sequence
  CacheType cache_type() const { return cache_.type(); }
  std::int64_t length() const { return cache_.length(); }
  std::int64_t capacity() const { return cache_.capacity(); }
  std::int64_t room() const { return capacity() - length(); }

 private:
  void check_tokens(std::span<const std::int32_t> tokens) const;
  // `arithmetic_length`: Pass::length.
  void read(std::span<const std::int32_t> tokens, Probe* probe, const StackActivations& activations,
            std::int64_t arithmetic_length);
  // A step that nothing looks into, as one launch; false, without effect, where it cannot be.
  bool repeat_step(std::int32_t token);
  // Reads one token and projects it.
  std::span<const float> read_one(std::int32_t token, Probe* probe, std::int64_t arithmetic_length);

  // Activations for `positions` new positions, kept for reuse: touching new memory is slow.
  const StackActivations& activations_for(std::int64_t positions);

  const Transformer& model_;
  KeyValueCache cache_;
  std::optional<StackActivations> prompt_;
  StackActivations step_;  // of a single position, so that decoding does not allocate
  Tensor<float> logits_;   // (1, V)
  DecodingGraph graph_;
  std::vector<std::int32_t> tokens_;
  Editor* editor_ = nullptr;
  std::int64_t text_length_ = 0;
};

// Cached decoding of many sequences of different lengths at once: each step reads every weight once
// for all of them. The results of a sequence do not depend on the others.
class BatchSession {
 public:
  // A sequence and its next token.
  struct Step {
    std::int64_t sequence;
    std::int32_t token;
  };

  // Borrows the model. Each sequence has a capacity of `capacity` positions, at most the model's
  // context, with keys and values stored as `cache_type`.
  BatchSession(const Transformer& model, std::int64_t capacity,
               CacheType cache_type = CacheType::f32);

  // Starts a sequence with a prompt, processed in one pass, and returns its number, which is valid
  // until end(); sets logits (V) to those of the next token. Allocates memory for `positions`
  // positions; 0: the session's capacity. A probe observes the pass as that of a single sequence.
  // Throws Error{invalid_argument} as step() does.
  std::int64_t begin(std::span<const std::int32_t> tokens, std::span<float> logits,
                     std::int64_t positions = 0, Probe* probe = nullptr);
  void end(std::int64_t sequence);

  // Appends one token to each of the given sequences. Returns the logits (steps.size(), V) of their
  // next tokens, valid until the next call. Throws Error{invalid_argument}, without effect, for a
  // sequence that does not exist or is repeated, an id outside the vocabulary, and a full sequence.
  //
  // A probe observes the sequences as a batch, (steps.size(), 1, …). Their memories differ in
  // length, so scores and patterns have no common shape: throws Error{unsupported} for a probe that
  // wants those or the operands of attention; use a Session for each sequence instead.
  View<const float> step(std::span<const Step> steps, Probe* probe = nullptr);

  // Sets the editor (borrowed, or null) of all following passes. It identifies sequences by their
  // index in a step; a starting sequence is the only one of its pass.
  void set_editor(Editor* editor) { editor_ = editor; }

  std::int64_t length(std::int64_t sequence) const;  // cached positions
  std::int64_t capacity() const { return capacity_; }
  std::int64_t active() const;  // sequences started and not ended

 private:
  std::unique_ptr<KeyValueCache> take_cache(std::int64_t positions);
  KeyValueCache& cache_of(std::int64_t sequence) const;
  void check_probe(const Probe* probe) const;
  void check_token(std::int32_t token, std::int64_t sequence) const;
  void make_room(std::int64_t rows);

  const Transformer& model_;
  std::int64_t capacity_;
  CacheType cache_type_;
  std::vector<std::unique_ptr<KeyValueCache>> caches_;  // by sequence; null: a free number
  std::vector<std::unique_ptr<KeyValueCache>> spare_;   // of ended sequences
  std::unique_ptr<StackActivations> activations_;       // of rows_ rows
  std::int64_t rows_ = 0;
  std::vector<std::int32_t> tokens_;
  Editor* editor_ = nullptr;
  Tensor<float> logits_;  // (rows_, V)
  DecodingGraph graph_;
};

}  // namespace heed
