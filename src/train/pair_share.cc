#include "train/pair_share.h"

#include <algorithm>

#include "kernels/kernels.h"

namespace heed {

void PairShare::read(const PairData& data, std::span<const std::int64_t> pairs,
                     const Options& options) {
  const auto tokens = [&](std::int64_t pair) {
    return data.length(PairSide::source, pair) + data.length(PairSide::target, pair);
  };
  const std::int64_t count = std::ssize(pairs), processes = options.processes;
  std::int64_t all = 0;
  all_targets_ = 0;
  for (const std::int64_t pair : pairs) {
    all += tokens(pair);
    all_targets_ += data.length(PairSide::target, pair);
  }
  // A pair belongs to the process in whose part of all tokens its middle lies.
  std::int64_t before = 0, begin = count, end = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t middle = 2 * before + tokens(pairs[static_cast<std::size_t>(i)]);
    if (middle * processes / (2 * all) == options.rank) {
      begin = std::min(begin, i);
      end = i + 1;
    }
    before += tokens(pairs[static_cast<std::size_t>(i)]);
  }
  nothing_.clear();
  const bool is_idle = begin >= end;
  if (is_idle) {
    begin = count - 1;
    end = count;
  }
  place_ = {.sequence = begin};
  for (std::int64_t i = 0; i < begin; ++i) {
    place_.source_row += data.length(PairSide::source, pairs[static_cast<std::size_t>(i)]);
    place_.target_row += data.length(PairSide::target, pairs[static_cast<std::size_t>(i)]);
  }
  rows_.read(data,
             pairs.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
             options.decoder_start);
  if (is_idle) {
    nothing_.assign(static_cast<std::size_t>(rows_.targets()), kernels::ignored_target);
  }
}

PairBatch PairShare::batch() const {
  PairBatch batch = rows_.batch();
  if (!nothing_.empty()) batch.next = nothing_;
  return batch;
}

}  // namespace heed
