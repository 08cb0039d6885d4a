// A model reading many sequences at once, each with a length of its own: every weight is read once
// a step for all of them. A sequence continues exactly as it would alone.
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
  // A sequence and the token it goes on with.
  struct Step {
    std::int64_t sequence;
    std::int32_t token;
  };

  // Borrows the model. Each sequence has room for `capacity` positions, at most the model's
  // context, keys and values held as `cache_type`.
  BatchSession(const Gpt& gpt, std::int64_t capacity, CacheType cache_type = CacheType::f32);

  // Begins a sequence with tokens, read in one pass, and returns its number, to be used until it is
  // ended; logits (V) are those of what follows. It may grow to `positions`, for which memory is
  // taken; 0: to the session's capacity. A probe sees the pass as it would see it alone. Throws
  // Error{invalid_argument} as step() does.
  std::int64_t begin(std::span<const std::int32_t> tokens, std::span<float> logits,
                     std::int64_t positions = 0, Probe* probe = nullptr);
  void end(std::int64_t sequence);

  // One token for each of some sequences, every sequence at most once. Returns the logits
  // (steps.size(), V) of what follows each; they stay valid until the next call. Throws
  // Error{invalid_argument}, and leaves all as it was, for a sequence that there is not, or twice,
  // for an id outside the vocabulary, and where a sequence is full.
  //
  // A probe sees the sequences as a batch, (steps.size(), 1, …). Their memories differ in length,
  // so that scores and patterns have no common shape: Error{unsupported} for one that wants those,
  // or what they are computed from; a Session shows them, sequence by sequence.
  View<const float> step(std::span<const Step> steps, Probe* probe = nullptr);

  // Who changes what is read from now on, borrowed; null: nobody. Sequences are told apart by their
  // place in a step; a sequence that begins is the only one of its pass.
  void set_editor(Editor* editor) { editor_ = editor; }

  std::int64_t length(std::int64_t sequence) const;  // positions read
  std::int64_t capacity() const { return capacity_; }
  std::int64_t active() const;  // sequences begun and not ended

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
