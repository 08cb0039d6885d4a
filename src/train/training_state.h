// Everything that a run needs to resume bit-identically, in one file that is written atomically.
#pragma once

#include <filesystem>
#include <limits>

#include "model/parameters.h"
#include "train/batch_order.h"
#include "train/optimizer.h"
#include "train/settings.h"
#include "train/sharded_model.h"

namespace heed {

// Random numbers need no state of their own: they are functions of the seed and these counters.
struct RunPosition {
  std::int64_t step = 0;  // steps finished
  bool evaluated = true;  // false: what is due after `step` (evaluation, sample, …) was stopped
  DataPosition data;
  // The lowest validation loss so far or, where BLEU is measured, the lowest of −BLEU; and when.
  double best_cost = std::numeric_limits<double>::infinity();
  std::int64_t best_step = 0;
  double seconds = 0;  // spent training
};

// Whether nothing is left to train: all steps are done, or evaluations no longer improve
// (TrainSettings::early_stop).
bool is_trained(const TrainSettings& settings, const RunPosition& position);

// Of the whole arena, `size` numbers each.
struct TrainingArrays {
  std::int64_t size = 0;
  NumberStream parameters;
  NumberStream first_moment;
  NumberStream second_moment;
};

void save_training_state(const std::filesystem::path& file, const RunPosition& position,
                         const TrainingArrays& arrays);

// Parameters and moments that this process does not keep are passed over. Throws
// Error{corrupt_data} when the file does not fit the model.
RunPosition load_training_state(const std::filesystem::path& file, ShardedModel& model,
                                Optimizer& optimizer);

// Its position alone. Throws Error{corrupt_data} when it has none.
RunPosition read_run_position(const std::filesystem::path& file);

}  // namespace heed
