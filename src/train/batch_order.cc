#include "train/batch_order.h"

#include "base/error.h"
#include "base/random.h"

namespace heed {
namespace {

// Streams of the run's seed that no other use of it shares.
constexpr std::uint64_t phase_stream = std::uint64_t{0x70686173} << 32;
constexpr std::uint64_t order_stream = std::uint64_t{0x6f726465} << 32;

}  // namespace

BatchOrder::BatchOrder(std::int64_t tokens, std::int64_t sequence_length, std::uint64_t seed)
    : tokens_(tokens), sequence_length_(sequence_length), seed_(seed) {
  require(tokens > sequence_length, ErrorCode::invalid_argument,
          "the training data holds {} tokens; sequences of {} need at least {}: give more text or "
          "set sequence_length lower",
          tokens, sequence_length, sequence_length + 1);
}

std::int64_t BatchOrder::phase(std::int64_t epoch) const {
  if (tokens_ - 1 < 2 * sequence_length_) return 0;  // a phase would cost the only window
  RandomStream random(seed_, phase_stream + static_cast<std::uint64_t>(epoch));
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(sequence_length_)));
}

std::int64_t BatchOrder::windows(std::int64_t epoch) const {
  return (tokens_ - 1 - phase(epoch)) / sequence_length_;
}

std::int64_t BatchOrder::next(DataPosition& position) const {
  if (position.index >= windows(position.epoch)) position = {position.epoch + 1, 0};
  const Permutation order(static_cast<std::uint64_t>(windows(position.epoch)), seed_,
                          order_stream + static_cast<std::uint64_t>(position.epoch));
  const auto window = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(position.index)));
  ++position.index;
  return phase(position.epoch) + window * sequence_length_;
}

}  // namespace heed
