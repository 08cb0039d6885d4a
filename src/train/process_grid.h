// How the processes of a group share a batch: rings of them share sequences, and the members of a
// ring share every sequence that it has.
#pragma once

#include <memory>

#include "comm/group.h"
#include "model/key_value_ring.h"
#include "train/batch_order.h"
#include "train/settings.h"

namespace heed {

class ProcessGrid {
 public:
  // Throws Error{invalid_argument} where settings.sequence_parallel processes cannot share a
  // sequence, or the group's rings a batch.
  ProcessGrid(const Group& group, const TrainSettings& settings);

  // Neighbours by rank are neighbours in a ring.
  int ring() const { return rank_ / place_.members; }
  int rings() const { return processes_ / place_.members; }
  const RingPlace& place() const { return place_; }
  // The sequences of a batch of which this process computes all, or its chunks.
  BatchShare share() const;

 private:
  int rank_;
  int processes_;
  RingPlace place_;
  std::int64_t batch_size_;
};

// The ring of this process; null where each sequence is one process'. Borrows the group.
std::unique_ptr<KeyValueRing> make_ring(Group& group, const ProcessGrid& grid);

}  // namespace heed
