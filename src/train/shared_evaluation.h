// Evaluations that the processes of a group share.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "comm/group.h"
#include "train/window_statistics.h"

namespace heed {

struct WindowLoss {
  double sum = 0;  // of its scored targets, in nats
  std::int64_t count = 0;
};

// What each process has, in the order of ranks.
std::vector<std::vector<WindowLoss>> gather_losses(Group& group,
                                                   const std::vector<WindowLoss>& own);

// `windows(batch)` gives the losses of the windows of a batch, of which there are `batches`. The
// processes of a group (null: this one is alone) take them in turn, and all of them get what one
// would have found, to the bit. All of them run the model as often: one that has no batch left
// repeats one.
template <class Windows>
Evaluation evaluate_in_turn(Group* group, std::int64_t batches, Windows&& windows) {
  const std::int64_t processes = group != nullptr ? group->size() : 1;
  const std::int64_t rank = group != nullptr ? group->rank() : 0;
  std::vector<WindowLoss> own;
  for (std::int64_t first = 0; first < batches; first += processes) {
    const std::int64_t batch = std::min(first + rank, batches - 1);
    const std::vector<WindowLoss> losses = windows(batch);
    if (batch != first + rank) continue;
    // A batch's losses, and before them their number.
    own.push_back({.count = std::ssize(losses)});
    own.insert(own.end(), losses.begin(), losses.end());
  }
  std::vector<std::vector<WindowLoss>> all{std::move(own)};
  if (processes > 1) all = gather_losses(*group, all.front());
  WindowStatistics statistics;
  std::vector<std::size_t> next(all.size(), 0);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const auto r = static_cast<std::size_t>(batch % processes);
    const std::int64_t count = all[r][next[r]++].count;
    for (std::int64_t i = 0; i < count; ++i) {
      const WindowLoss& each = all[r][next[r]++];
      statistics.add(each.sum, each.count);
    }
  }
  return statistics.result();
}

}  // namespace heed
