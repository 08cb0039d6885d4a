#include "train/batch_order.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace heed {
namespace {

// Streams of the run's seed that no other use of it shares.
constexpr std::uint64_t phase_stream = std::uint64_t{0x70686173} << 32;
constexpr std::uint64_t order_stream = std::uint64_t{0x6f726465} << 32;

// The beginning of each document, at the mark that ends the one before so that its first token is
// predicted too, and every sequence_length tokens on within it, so that long ones are read whole.
std::vector<std::int64_t> document_starts(const TokenSequence& tokens, std::int32_t end_of_text,
                                          std::int64_t sequence_length) {
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> buffer(std::size_t{1} << 16);
  for (std::int64_t begin = 0; begin < tokens.size(); begin += std::ssize(buffer)) {
    const std::int64_t count = std::min(std::ssize(buffer), tokens.size() - begin);
    tokens.read(begin, std::span(buffer).first(static_cast<std::size_t>(count)));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = begin + i;
      const bool has_target = position + 1 < tokens.size();
      const bool starts_document = buffer[static_cast<std::size_t>(i)] == end_of_text;
      const bool goes_on = position - starts.back() == sequence_length;
      if (has_target && position > 0 && (starts_document || goes_on)) starts.push_back(position);
    }
  }
  return starts;
}

}  // namespace

BatchOrder::BatchOrder(const TokenSequence& tokens, std::int32_t end_of_text,
                       const TrainSettings& settings)
    : tokens_(tokens.size()), sequence_length_(settings.sequence()), seed_(settings.seed) {
  require(tokens_ > sequence_length_, ErrorCode::invalid_argument,
          "the training data holds {} tokens; sequences of {} need at least {}: give more text or "
          "set sequence_length lower",
          tokens_, sequence_length_, sequence_length_ + 1);
  if (settings.windows == Windows::documents) {
    starts_ = document_starts(tokens, end_of_text, sequence_length_);
  }
}

std::int64_t BatchOrder::phase(std::int64_t epoch) const {
  if (tokens_ - 1 < 2 * sequence_length_) return 0;  // a phase would cost the only window
  RandomStream random(seed_, phase_stream + static_cast<std::uint64_t>(epoch));
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(sequence_length_)));
}

std::int64_t BatchOrder::windows(std::int64_t epoch) const {
  if (!starts_.empty()) return std::ssize(starts_);
  return (tokens_ - 1 - phase(epoch)) / sequence_length_;
}

std::int64_t BatchOrder::next(DataPosition& position) const {
  if (position.index >= windows(position.epoch)) position = {position.epoch + 1, 0};
  const Permutation order(static_cast<std::uint64_t>(windows(position.epoch)), seed_,
                          order_stream + static_cast<std::uint64_t>(position.epoch));
  const auto window = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(position.index)));
  ++position.index;
  if (!starts_.empty()) return starts_[static_cast<std::size_t>(window)];
  return phase(position.epoch) + window * sequence_length_;
}

}  // namespace heed
