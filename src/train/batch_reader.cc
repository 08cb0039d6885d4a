#include "train/batch_reader.h"

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace heed {

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
