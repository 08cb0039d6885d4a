// Cached decoding of many sequences of different lengths at once: each step reads every weight once
// for all of them. The results of a sequence do not depend on the others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/cache.h"
#include "model/gpt.h"

namespace heed {

class BatchSession {
 public:
  // A sequence and its next token.
  struct Step {
    std::int64_t sequence;
    std::int32_t token;
  };

  // Borrows the model. Each sequence has a capacity of `capacity` positions, at most the model's
  // context, with keys and values stored as `cache_type`.
  BatchSession(const Gpt& gpt, std::int64_t capacity, CacheType cache_type = CacheType::f32);

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

  const Gpt& gpt_;
  std::int64_t capacity_;
  CacheType cache_type_;
  std::vector<std::unique_ptr<KeyValueCache>> caches_;  // by sequence; null: a free number
  std::vector<std::unique_ptr<KeyValueCache>> spare_;   // of ended sequences
  std::unique_ptr<GptActivations> activations_;         // of rows_ rows
  std::int64_t rows_ = 0;
  std::vector<std::int32_t> tokens_;
  Editor* editor_ = nullptr;
  Tensor<float> logits_;  // (rows_, V)
};

}  // namespace heed
