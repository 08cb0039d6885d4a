// The memory that a training run needs, computed before it starts.
#pragma once

#include <cstdint>
#include <optional>

#include "train/settings.h"

namespace heed {

struct TrainingMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t moments = 0;      // two of AdamW for each parameter
  std::int64_t activations = 0;  // of the blocks, kept for backward
  std::int64_t working = 0;      // gradients of activations, logits of a chunk, an evaluation

  std::int64_t total() const { return parameters + gradients + moments + activations + working; }
};

// Memory of each process; settings.batch_size is its share of the batch: the sequences, or the
// sequences of which it has chunks.
TrainingMemory training_memory(const TrainSettings& settings, int processes = 1);
// The same for training on pairs.
TrainingMemory training_memory(const TrainSettings& settings, const Architecture& architecture,
                               int processes = 1);

// Throws Error{out_of_memory} if a run needs more than `available` bytes, naming settings that
// train the same and would fit, if there are any. No limit if `available` is unknown.
void require_training_memory(const TrainSettings& settings, std::optional<std::int64_t> available,
                             int processes = 1);
void require_training_memory(const TrainSettings& settings, const Architecture& architecture,
                             std::optional<std::int64_t> available, int processes = 1);

}  // namespace heed
