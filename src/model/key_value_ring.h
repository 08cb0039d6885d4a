// The ring of processes among which the sequences of a batch are divided: all that a model knows of
// other processes. Keys and values go around it, from each member to the next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/architecture.h"
#include "model/sequences.h"
#include "tensor/tensor.h"

namespace heed {

// Which positions of a sequence a member of a ring has. The sequence is cut into 2N chunks of equal
// length c, of which member r of N has chunks r and 2N − 1 − r: under a causal mask each then has
// as many pairs of a query and a visible key as the others, and as many with the keys of any
// member.
struct RingPlace {
  int member = 0;  // r
  int members = 1;
  std::int64_t positions = 0;  // T, a multiple of 2N

  static constexpr std::int64_t chunks = 2;  // of a member

  std::int64_t chunk_length() const { return positions / (chunks * members); }
  // The first position of chunk 0 or 1 of a member.
  std::int64_t start(int of, std::int64_t chunk) const {
    return (chunk == 0 ? of : chunks * members - 1 - of) * chunk_length();
  }
  // Whose keys and values a member has after so many turns of the ring.
  int source(int turns) const { return (member + members - turns % members) % members; }
};

// Working memory of attention over a ring, which the first pass takes and later ones use again.
struct RingBuffers {
  Tensor<float> memory[2];       // (2, 2B, c, G, D): keys and values at hand, and arriving
  Tensor<float> d_memory[2];     // their gradients
  Tensor<float> out;             // (B, c, H, D): of a chunk with another, or d_query
  Tensor<float> log_sum_exp;     // (B, H, c)
  Tensor<float> d_key, d_value;  // (B, c, G, D)
};

class KeyValueRing {
 public:
  explicit KeyValueRing(const RingPlace& place) : place_(place) {}
  virtual ~KeyValueRing() = default;
  KeyValueRing(const KeyValueRing&) = delete;
  KeyValueRing& operator=(const KeyValueRing&) = delete;

  const RingPlace& place() const { return place_; }

  // Begins to send to the next member, and to receive as much from the previous one; neither memory
  // changes before finish() has returned for it. Members begin and finish the same, in one order.
  virtual void begin(std::span<const float> sent, std::span<float> received) = 0;
  virtual void advance() = 0;  // what was begun, without waiting
  virtual void finish() = 0;   // waits for what was begun first

  // Of all members, in the order of their numbers.
  virtual double sum(double value) = 0;

  RingBuffers& buffers() { return buffers_; }

  // Of the buffers, for `batch` sequences of T positions.
  static std::int64_t bytes_needed(const StackSpecification& stack, std::int64_t batch,
                                   const RingPlace& place);

 private:
  RingPlace place_;
  RingBuffers buffers_;
};

// Of a pass over sequences (B, T): theirs, or those of a ring member's chunks (2·B, c).
struct PassShape {
  std::int64_t batch;
  std::int64_t positions;

  PassShape(std::int64_t sequences, std::int64_t length, const KeyValueRing* ring);
};

// What a pass computes of a batch of sequences (B, T): all of it, or the chunks of a ring's member,
// as 2·B sequences of c positions, first the first chunks of all.
class PassRows {
 public:
  // Borrows the views, and the ring, which may be null. Throws Error{invalid_argument} unless both
  // views have one shape, of T positions.
  PassRows(View<const std::int32_t> tokens, View<const std::int32_t> targets,
           const KeyValueRing* ring);
  PassRows(const PassRows&) = delete;
  PassRows& operator=(const PassRows&) = delete;

  View<const std::int32_t> tokens() const { return tokens_; }
  View<const std::int32_t> targets() const { return targets_; }
  const Sequences& sequences() const { return sequences_; }

 private:
  Tensor<std::int32_t> chunks_[2];  // of tokens and targets
  Sequences sequences_;
  View<const std::int32_t> tokens_;
  View<const std::int32_t> targets_;
};

}  // namespace heed
