// What processes hold of a model in each stage, and what they make of it together.
#include "train/sharded_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/temporary_directory.h"
#include "comm/local_group.h"
#include "formats/model_files.h"
#include "model/transformer.h"

namespace heed {
namespace {

using testing::as_members;

constexpr std::int64_t row_length = 8;

// A step of one sequence; every process has another one, of tokens from the whole vocabulary.
void compute(const Transformer& transformer, Gradients& gradients, int rank) {
  std::int32_t tokens[row_length + 1];
  const auto stride = static_cast<int>(transformer.specification().vocabulary_size / 50);
  for (int t = 0; t <= row_length; ++t) tokens[t] = (7 * t + 3 * rank) % 50 * stride;
  TrainingBuffers buffers(transformer.specification(), 1, row_length);
  transformer.loss_and_gradients({tokens, {1, row_length}}, {tokens + 1, {1, row_length}}, {},
                                 buffers, gradients);
}

struct Process {
  Process(const StackSpecification& config, const TrainSettings& settings, Group& group)
      : shards(settings, group) {
    shards.plan({.stacks = {config}});
    transformer.emplace(Architecture{.stacks = {config}}, shards.parameter_memory());
    shards.hold(transformer->parameters());
    shards.initialize(5);
    gradients.emplace(transformer->parameters().architecture(), shards.gradient_memory());
    shards.hold(*gradients);
  }

  ShardedModel shards;
  std::optional<Transformer> transformer;
  std::optional<Gradients> gradients;
};

// Two passes a step, as those of accumulation, and an update between two steps.
void check_gradients(const StackSpecification& config) {
  for (const std::int64_t stage : {1, 2, 3}) {
    as_members(3, [&](Group& group) {
      Transformer whole({.stacks = {config}});
      whole.parameters().initialize(5);
      TrainSettings settings;
      settings.shard = stage;
      Process process(config, settings, group);
      for (int step = 0; step < 2; ++step) {
        Gradients expected({.stacks = {config}});
        for (int rank = 0; rank < 3; ++rank) {
          for (const int pass : {0, 1}) compute(whole, expected, rank + pass);
        }
        process.shards.begin_step();
        process.shards.begin_pass(ShardedModel::Pass::not_last);
        compute(*process.transformer, *process.gradients, group.rank());
        process.shards.begin_pass(ShardedModel::Pass::last);
        compute(*process.transformer, *process.gradients, group.rank() + 1);
        process.shards.finish_gradients();
        float largest = 0;
        for (const float each : expected.all()) largest = std::max(largest, std::abs(each));
        for (const ArenaRange& range : process.shards.shards().own()) {
          for (std::size_t i = range.begin; i < range.end; ++i) {
            // Sums of six terms in another order.
            ASSERT_NEAR(process.gradients->all()[i], expected.all()[i], 2e-6F * largest)
                << "stage " << stage << ", step " << step << ", number " << i;
          }
        }
        process.shards.finish();
        for (float& each : whole.parameters().all()) each *= 0.5F;
        for (const ArenaRange& range : process.shards.shards().own()) {
          for (float& each :
               process.transformer->parameters().all().subspan(range.begin, range.size())) {
            each *= 0.5F;
          }
        }
        process.shards.share_parameters();
      }
      // All parameters, wherever they are.
      std::vector<float> parameters;
      process.shards.parameter_stream()([&](std::span<const float> piece) {
        parameters.insert(parameters.end(), piece.begin(), piece.end());
      });
      EXPECT_TRUE(std::ranges::equal(parameters, whole.parameters().all()));
    });
  }
}

TEST(ShardedModel, EveryStageAddsUpTheSameGradients) {
  check_gradients(make_gpt_config(3, 2, 64, row_length, 50));
}

TEST(ShardedModel, EveryStageAddsUpTheSameGradientsOfATableInPieces) {
  const StackSpecification config = make_gpt_config(2, 2, 64, row_length, 20000);
  ASSERT_EQ(table_piece_rows({.stacks = {config}}), 10000);
  check_gradients(config);
}

// One process saves what no process has.
TEST(ShardedModel, SavesATableThatComesInPieces) {
  const StackSpecification config = make_gpt_config(2, 2, 64, row_length, 20000);
  const testing::TemporaryDirectory directory;
  as_members(3, [&](Group& group) {
    TrainSettings settings;
    settings.shard = 3;
    const Process process(config, settings, group);
    if (group.rank() == 0) {
      save_transformer(*process.transformer, directory.path());
    } else {
      read_weights(*process.transformer);
    }
  });
  Transformer whole({.stacks = {config}});
  whole.parameters().initialize(5);
  const Transformer saved = load_transformer(StacksWanted::one, directory.path());
  EXPECT_TRUE(std::ranges::equal(saved.parameters().all(), whole.parameters().all()));
}

// Parameters, gradients and moments of one of four processes, at the worst moment of a step, beside
// those of one process.
void check_memory(const StackSpecification& config) {
  const auto whole =
      static_cast<double>(parameter_layout({.stacks = {config}}).size()) * 4 * sizeof(float);
  as_members(4, [&](Group& group) {
    TrainSettings settings;
    settings.shard = 3;
    Process process(config, settings, group);
    for (int step = 0; step < 2; ++step) {
      process.shards.begin_step();
      process.shards.begin_pass(ShardedModel::Pass::last);
      compute(*process.transformer, *process.gradients, group.rank());
      process.shards.finish_gradients();
      process.shards.finish();
      process.shards.share_parameters();
    }
    std::size_t own = 0;
    for (const ArenaRange& range : process.shards.shards().own()) own += range.size();
    const double moments = 2.0 * static_cast<double>(own) * sizeof(float);
    const double held = static_cast<double>(process.shards.peak_bytes()) + moments;
    EXPECT_LE(held, 0.35 * whole);
    EXPECT_GE(held, 0.25 * whole);
  });
}

TEST(ShardedModel, HoldsAThirdOfTheStateInFourProcesses) {
  check_memory(make_gpt_config(10, 4, 128, row_length, 50));
}

// Three quarters of the numbers are those of the table.
TEST(ShardedModel, HoldsAThirdOfALargeVocabulary) {
  check_memory(make_gpt_config(10, 4, 128, row_length, 60000));
}

}  // namespace
}  // namespace heed
