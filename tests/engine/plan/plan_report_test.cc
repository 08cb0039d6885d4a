// What readers of a plan are told.
#include "engine/plan/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/memory.h"
#include "engine/bench/training_rates.h"

namespace heed {
namespace {

using ::testing::HasSubstr;

PlanReport report_of(const Cluster& cluster, int shard) {
  PlanRequest request{.name = "gpt2",
                      .settings = planned_settings("gpt2"),
                      .cluster = cluster,
                      .distribution = {.shard = shard},
                      .rates = TrainingRates::uniform(1e11, 1e10)};
  request.tokens = usual_tokens("gpt2", request.settings);
  return make_plan_report(request);
}

TEST(PlanReport, SaysWhatLimitsAndWhatWouldHelp) {
  EXPECT_THAT(report_of({.nodes = 2}, 1).limit, HasSubstr("Computing limits"));
  const PlanReport links = report_of({.nodes = 2, .bandwidth = 1e6}, 1);
  EXPECT_THAT(links.limit, HasSubstr("The links limit"));
  EXPECT_THAT(links.limit, HasSubstr("498 MB"));  // half of the parameters each way, twice
  EXPECT_THAT(report_of({.nodes = 2, .latency = 10}, 1).limit, HasSubstr("Latency limits"));
  EXPECT_THAT(report_of({.nodes = 320}, 1).limit, HasSubstr("do not divide evenly"));
  const Cluster small{.nodes = 2, .memory_per_node = 2.2e9};
  EXPECT_THAT(report_of(small, 1).limit, HasSubstr("would be enough"));
  const Cluster tiny{.nodes = 2, .memory_per_node = 0.9e9};  // less than a process has whole
  EXPECT_THAT(report_of(tiny, 1).limit, HasSubstr("parameters and gradients whole"));
  const PlanReport sharded = report_of(small, 3);
  ASSERT_TRUE(sharded.min_nodes.has_value());
  EXPECT_THAT(sharded.plan.fits ? "" : sharded.limit,
              sharded.plan.fits ? HasSubstr("") : HasSubstr("would be enough"));
}

TEST(PlanReport, IsOneDocument) {
  const PlanReport report = report_of({.nodes = 4}, 1);
  const OrderedJson json = plan_report_json(report);
  EXPECT_EQ(json["parameters"], 124'439'808);
  EXPECT_EQ(json["step_seconds"]["total"], report.plan.step.total());
  EXPECT_EQ(json["memory"]["total"], report.plan.memory.total());
  EXPECT_EQ(json["sentence"], report.limit);
  EXPECT_EQ(json["min_nodes"], nullptr);
  EXPECT_EQ(json["training"]["tokens"], 600'000.0 * 480 * 1024);
  EXPECT_EQ(usual_tokens("gpt3-13b", planned_settings("gpt3-13b")), 3e11);
}

// With the run's own length, and the precision left open, as `heed plan gpt3` has them.
TEST(TrainingRates, OfGpt3FitASmallMachine) {
  TrainSettings settings = planned_settings("gpt3");
  ASSERT_FALSE(settings.precision.has_value());
  reset_peak_resident_bytes();
  const std::int64_t before = peak_resident_bytes();
  const TrainingRates rates =
      measure_training_rates(settings, {.sequences = 1, .pass_flops = 1, .seconds = 0});
  rates.validate();
  EXPECT_TRUE(settings.precision.has_value());
  EXPECT_EQ(settings.model.channels, 12'288);  // the run's, not what was measured
  EXPECT_LT(peak_resident_bytes() - before, 2'000'000'000);
}

TEST(TrainingRates, AreThoseOfAShapeTooLargeToBeMeasuredWhole) {
  TrainSettings settings = planned_settings("gpt3");
  settings.precision = kernels::Precision::f32;
  settings.sequence_length = 64;
  const TrainingRates rates =
      measure_training_rates(settings, {.sequences = 1, .pass_flops = 1, .seconds = 0});
  rates.validate();
  EXPECT_GT(rates.block_forward, 1e8);
  EXPECT_GT(rates.memory, 1e8);
}

}  // namespace
}  // namespace heed
