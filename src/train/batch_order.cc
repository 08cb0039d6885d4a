#include "train/batch_order.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "train/token_data.h"

namespace heed {
namespace {

// Streams of the run's seed that no other use of it shares.
constexpr std::uint64_t phase_stream = std::uint64_t{0x70686173} << 32;
constexpr std::uint64_t order_stream = std::uint64_t{0x6f726465} << 32;
constexpr std::uint64_t prompt_stream = std::uint64_t{0x70726f6d} << 32;

}  // namespace

BatchOrder::BatchOrder(const TokenSequence& tokens, std::int32_t end_of_text,
                       const TrainSettings& settings)
    : tokens_(tokens.size()),
      sequence_length_(settings.sequence()),
      seed_(settings.seed),
      kind_(settings.windows) {
  require(tokens_ > sequence_length_, ErrorCode::invalid_argument,
          "the training data holds {} tokens; sequences of {} need at least {}: give more text or "
          "set sequence_length lower",
          tokens_, sequence_length_, sequence_length_ + 1);
  if (kind_ != Windows::stream) {
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

// 1 for half of the windows of Windows::prompts, at random; a window keeps at least two tokens.
std::int64_t BatchOrder::left_out(std::int64_t epoch, std::int64_t window) const {
  if (kind_ != Windows::prompts) return 0;
  if (starts_[static_cast<std::size_t>(window)] + 2 >= tokens_) return 0;
  const Permutation order(static_cast<std::uint64_t>(std::ssize(starts_)), seed_,
                          prompt_stream + static_cast<std::uint64_t>(epoch));
  return static_cast<std::int64_t>(order(static_cast<std::uint64_t>(window)) % 2);
}

std::int64_t BatchOrder::next(DataPosition& position) const {
  if (position.index >= windows(position.epoch)) position = {position.epoch + 1, 0};
  const Permutation order(static_cast<std::uint64_t>(windows(position.epoch)), seed_,
                          order_stream + static_cast<std::uint64_t>(position.epoch));
  const auto window = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(position.index)));
  ++position.index;
  if (!starts_.empty()) {
    return starts_[static_cast<std::size_t>(window)] + left_out(position.epoch, window);
  }
  return phase(position.epoch) + window * sequence_length_;
}

BatchReader::BatchReader(const TokenData& data, const TrainSettings& settings,
                         const BatchShare& share)
    : data_(data),
      order_(data, static_cast<std::int32_t>(settings.model.end_of_text), settings),
      batch_size_(settings.batch_size),
      share_(share),
      tokens_(Shape{share.size(), settings.sequence()}),
      targets_(Shape{share.size(), settings.sequence()}) {}

void BatchReader::read(DataPosition& position) {
  const std::int64_t length = tokens_.shape()[1];
  std::vector<std::int32_t> window(static_cast<std::size_t>(length + 1));
  for (std::int64_t sequence = 0; sequence < batch_size_; ++sequence) {
    const std::int64_t begin = order_.next(position);
    if (sequence < share_.begin || sequence >= share_.end) continue;
    const std::int64_t row = sequence - share_.begin;
    const std::int64_t count = std::min(length, data_.size() - 1 - begin);  // targets left
    data_.read(begin, std::span(window).first(static_cast<std::size_t>(count + 1)));
    const View<std::int32_t> tokens = tokens_.view()[row];
    const View<std::int32_t> targets = targets_.view()[row];
    for (std::int64_t t = 0; t < length; ++t) {
      tokens(t) = t < count ? window[static_cast<std::size_t>(t)] : 0;
      targets(t) = t < count ? window[static_cast<std::size_t>(t + 1)] : kernels::ignored_target;
    }
  }
}

}  // namespace heed
