#include "train/memory.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed {
namespace {

TrainSettings settings_of(std::int64_t batch) {
  TrainSettings settings;
  settings.model = make_gpt_config(12, 12, 768, 1024, 50257);
  settings.batch_size = batch;
  return settings;
}

constexpr std::int64_t gibibyte = std::int64_t{1} << 30;

// A block keeps 3A + A + 4C + 2F = 16C floats a row, the stream one more C: 17 · 768 · 4 bytes, in
// 12 layers, for 4,096 rows.
TEST(TrainingMemory, CountsWhatABlockKeeps) {
  const TrainingMemory memory = training_memory(settings_of(4));
  const double blocks = 12.0 * 4096 * (16 * 768) * 4;
  EXPECT_NEAR(static_cast<double>(memory.activations) / blocks, 1.0, 0.02);
  EXPECT_NEAR(static_cast<double>(memory.parameters), 124439808.0 * 4, 1e5);
  EXPECT_EQ(memory.moments, 2 * memory.parameters);
}

// Twelve blocks' streams, the embedding, what a branch adds and the final norm; one block.
TEST(TrainingMemory, RecomputingKeepsTheStreamAlone) {
  TrainSettings settings = settings_of(4);
  settings.recompute = true;
  const double stream = 15.0 * 4096 * 768 * 4, block = 4096.0 * (15 * 768) * 4;
  EXPECT_NEAR(static_cast<double>(training_memory(settings).activations) / (stream + block), 1.0,
              0.1);
}

TEST(TrainingMemory, RefusesWhatCannotFitWithSettingsThatWould) {
  const TrainSettings settings = settings_of(8);
  require_training_memory(settings, std::nullopt);
  require_training_memory(settings, 100 * gibibyte);
  testing::expect_error(
      ErrorCode::out_of_memory, [&] { require_training_memory(settings, 5 * gibibyte); },
      "5.0 GiB are free", "--set recompute=true");
  testing::expect_error(
      ErrorCode::out_of_memory, [&] { require_training_memory(settings, 5 * gibibyte / 2); },
      "--set batch_size=", "--set accumulation=");
  testing::expect_error(
      ErrorCode::out_of_memory, [&] { require_training_memory(settings, gibibyte); },
      "smaller model");
}

}  // namespace
}  // namespace heed
