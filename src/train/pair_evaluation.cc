#include "train/pair_evaluation.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "train/pair_order.h"
#include "train/pair_rows.h"
#include "train/shared_evaluation.h"
#include "train/stop_probe.h"

namespace heed {
namespace {

std::vector<std::int64_t> by_length(const PairData& data) {
  std::vector<std::int64_t> pairs(static_cast<std::size_t>(data.size()));
  std::iota(pairs.begin(), pairs.end(), 0);
  std::ranges::stable_sort(pairs, {}, [&](std::int64_t pair) {
    return std::max(data.length(PairSide::source, pair), data.length(PairSide::target, pair));
  });
  return pairs;
}

}  // namespace

Evaluation evaluate_pairs(const EncoderDecoder& model, const PairData& data,
                          const PairEvaluationOptions& options) {
  const PairBatches batches = cut_batches(data, by_length(data), options.batch_tokens);
  const std::int64_t wanted =
      options.batches > 0 ? std::min(options.batches, batches.count()) : batches.count();
  PairBuffers buffers(model.architecture(), Keep::one_block);
  buffers.loss().set_stop(options.stop);
  StopProbe stop(options.stop);
  PairRows rows;
  return evaluate_in_turn(options.group, wanted, [&](std::int64_t i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped while evaluating");
    rows.read(data, batches.batch(i * batches.count() / wanted),
              static_cast<std::int32_t>(model.architecture().decoder_start));
    const PairBatch batch = rows.batch();
    model.loss(batch, buffers, options.stop != nullptr ? &stop : nullptr);
    const std::span<const float> losses = buffers.losses();
    std::vector<WindowLoss> result;
    for (std::size_t b = 0; b + 1 < batch.target.row_starts.size(); ++b) {
      const std::int64_t begin = batch.target.row_starts[b], end = batch.target.row_starts[b + 1];
      result.push_back(
          {std::accumulate(losses.begin() + begin, losses.begin() + end, 0.0), end - begin});
    }
    return result;
  });
}

}  // namespace heed
