// Plans of training on clusters: every term by hand, what happens at the limits, and bad input.
#include "engine/plan/scaling_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/expect_error.h"
#include "model/parameter_count.h"
#include "model/presets.h"
#include "train/memory.h"
#include "train/settings.h"

namespace heed {
namespace {

using testing::expect_error;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// Two blocks of 32 channels over 64 tokens: small enough to count by hand.
//   a block: 4·32² + 8·32² weights, 4·32 of norms, 96 + 32 + 128 + 32 of biases: 12,704
//   all: 64·32 + 16·32 + 2 · 12,704 + 64 of the final norm: 28,032, each tensor whole lines
constexpr double arena_numbers = 28032;
TrainSettings planned_settings() {
  TrainSettings settings;
  settings.model = make_gpt_config(2, 2, 32, 16, 64);
  settings.batch_size = 8;
  settings.accumulation = 1;
  return settings;
}

constexpr double rate = 1e9;  // operations and bytes a second
TrainingRates small_rates() { return TrainingRates::uniform(rate, rate); }

Cluster two_nodes() { return {.nodes = 2, .bandwidth = 1e6, .latency = 1e-3}; }

ScalingPlan plan_of(const TrainSettings& settings, const Cluster& cluster,
                    const Distribution& distribution = {}) {
  return plan_scaling(settings, cluster, distribution, small_rates());
}

TEST(ScalingPlan, ComputesEachTermByItsFormula) {
  const ScalingPlan plan = plan_of(planned_settings(), two_nodes());
  EXPECT_EQ(plan.own_sequences, 4);
  EXPECT_EQ(plan.tokens_per_step, 8 * 16);
  // 2 · 24,576 weights of blocks; 2 layers · 4 · 32 channels · 16/2 positions; 2 · 64 · 32.
  const double block = 2 * 24576 + 2 * 4 * 32 * 8, ends = 2 * 64 * 32, tokens = 4 * 16;
  EXPECT_DOUBLE_EQ(plan.flops_per_token, 3 * (block + ends));
  EXPECT_DOUBLE_EQ(plan.step.forward, tokens * (block + ends) / rate);
  EXPECT_DOUBLE_EQ(plan.step.backward, 2 * tokens * (block + ends) / rate);
  // All are cleared; of the own half the sum of two, the norm, and four arrays in, three out.
  EXPECT_DOUBLE_EQ(plan.step.update, 4 * (arena_numbers + arena_numbers / 2 * (5 + 1 + 7)) / rate);
  const double bytes = 4 * arena_numbers / 2;
  for (const PlannedExchange& each : {plan.step.gradients, plan.step.parameters}) {
    EXPECT_DOUBLE_EQ(each.bytes, bytes);
    EXPECT_DOUBLE_EQ(each.transfer, bytes / 1e6);
    EXPECT_DOUBLE_EQ(each.latency, 1e-3);  // one bucket, below the limit of rendezvous
    EXPECT_EQ(each.hidden, 0);
  }
  EXPECT_EQ(plan.step.ring.seconds(), 0);
  EXPECT_DOUBLE_EQ(plan.step.agreement, 9e-3);
  EXPECT_DOUBLE_EQ(plan.step.total(), plan.step.forward + plan.step.backward + plan.step.update +
                                          2 * (bytes / 1e6 + 1e-3) + 9e-3);
  EXPECT_EQ(plan.limit, PlanLimit::bandwidth);
}

TEST(ScalingPlan, CountsWhatParamsCounts) {
  for (const ModelPreset& preset : model_presets()) {
    TrainSettings settings = train_preset(preset.name);
    settings.batch_size = 1;
    const ScalingPlan plan = plan_of(settings, {});
    EXPECT_EQ(plan.parameters, count_parameters(preset.config).total) << preset.name;
    StackSpecification shape = settings.model;
    shape.context = settings.sequence();
    EXPECT_EQ(plan.flops_per_token, model_cost(shape).train_flops_per_token) << preset.name;
  }
}

TEST(ScalingPlan, AgreesWithThePublishedTrainingOfGpt3) {
  TrainSettings settings = train_preset("gpt3");
  settings.batch_size = 1536;
  settings.accumulation = 1;
  const TrainingBill bill = training_bill(plan_of(settings, {.nodes = 1536}, {.shard = 3}), 3e11);
  // Brown et al. 2020, table D.1: 3.14e23, which leaves attention's scores and values out.
  EXPECT_NEAR(bill.operations / 3.14e23, 1, 0.02);
  EXPECT_EQ(bill.steps, std::ceil(3e11 / (1536 * 2048)));
}

TEST(ScalingPlan, AloneIsAllComputing) {
  const ScalingPlan plan = plan_of(planned_settings(), {.bandwidth = 1, .latency = 1});
  EXPECT_EQ(plan.step.exposed(), 0);
  EXPECT_DOUBLE_EQ(plan.efficiency, 1);
  EXPECT_EQ(plan.limit, PlanLimit::compute);
  EXPECT_EQ(plan.memory.exchange, 0);
  EXPECT_EQ(plan.memory.total(), training_memory(planned_settings()).total());
}

TEST(ScalingPlan, LosesNothingWithoutLinksAndMemory) {
  const TrainingRates rates = TrainingRates::uniform(rate, infinity);
  for (const int shard : {1, 2, 3}) {
    const ScalingPlan plan =
        plan_scaling(planned_settings(), {.nodes = 8, .bandwidth = infinity, .latency = 0},
                     {.shard = shard}, rates);
    EXPECT_DOUBLE_EQ(plan.efficiency, 1) << shard;
    EXPECT_EQ(plan.step.exposed(), 0) << shard;
  }
}

TEST(ScalingPlan, IsFasterOnFasterLinks) {
  TrainSettings settings = train_preset("gpt2");
  for (const int shard : {1, 2, 3}) {
    for (const auto exchange :
         {Distribution::Exchange::after_backward, Distribution::Exchange::during_backward}) {
      double before = infinity;
      for (double bandwidth = 1e6; bandwidth < 1e13; bandwidth *= 3) {
        const Cluster cluster{.nodes = 8, .bandwidth = bandwidth};
        const double now =
            plan_of(settings, cluster, {.shard = shard, .exchange = exchange}).step.total();
        EXPECT_LE(now, before);
        before = now;
      }
      before = 0;
      for (const double latency : {0.0, 1e-6, 1e-4, 1e-2}) {
        const Cluster cluster{.nodes = 8, .latency = latency};
        const double now =
            plan_of(settings, cluster, {.shard = shard, .exchange = exchange}).step.total();
        EXPECT_GT(now, before);
        before = now;
      }
    }
  }
}

TEST(ScalingPlan, SendsWhatEachStageSends) {
  TrainSettings settings = planned_settings();
  settings.accumulation = 2;
  const double share = 4 * arena_numbers / 2;
  const auto bytes = [&](int shard) {
    const PlannedStep step = plan_of(settings, two_nodes(), {.shard = shard}).step;
    return std::pair(step.gradients.bytes / share, step.parameters.bytes / share);
  };
  EXPECT_EQ(bytes(1), std::pair(1.0, 1.0));
  EXPECT_EQ(bytes(2), std::pair(2.0, 1.0));  // after each of two passes
  EXPECT_EQ(bytes(3), std::pair(2.0, 4.0));  // for each pass, forward and backward
  const PlannedStep halved =
      plan_of(settings, two_nodes(), {.wire = Distribution::Wire::bf16}).step;
  EXPECT_EQ(halved.gradients.bytes, share / 2);
}

TEST(ScalingPlan, HidesExchangesBehindComputing) {
  TrainSettings settings = train_preset("gpt2");
  settings.batch_size = 8;
  settings.accumulation = 1;
  const auto step_of = [&](Distribution::Exchange exchange, double operations, double bytes) {
    return plan_scaling(settings, {.nodes = 2, .latency = 0}, {.exchange = exchange},
                        TrainingRates::uniform(operations, bytes))
        .step;
  };
  const auto after = Distribution::Exchange::after_backward;
  const auto during = Distribution::Exchange::during_backward;
  const PlannedStep waits = step_of(after, 1e9, 1e12);
  EXPECT_EQ(waits.hidden(), 0);
  // Long passes hide all but the embeddings and the first of twelve blocks, which come last, and
  // are needed first.
  const PlannedStep overlaps = step_of(during, 1e9, 1e12);
  EXPECT_EQ(overlaps.gradients.seconds(), waits.gradients.seconds());
  const double embeddings = (50257.0 + 1024) * 768 / 124439808;
  for (const PlannedExchange* each : {&overlaps.gradients, &overlaps.parameters}) {
    EXPECT_NEAR(each->exposed() / each->seconds(), embeddings + (1 - embeddings) / 12, 1e-4);
  }
  // Short ones hide as much as they last, and copies take the core's time in any case.
  const PlannedStep fast = step_of(during, 1e18, 1e12);
  EXPECT_NEAR(fast.gradients.hidden, 0, 1e-5);
  const PlannedStep copied = step_of(during, 1e9, 2e9);
  EXPECT_GE(copied.gradients.exposed(), 4 * copied.gradients.bytes / 2e9);
  TrainingRates given = TrainingRates::uniform(1e9, 1e12);
  given.copies = 1e8;
  const PlannedStep slowly =
      plan_scaling(settings, {.nodes = 2, .latency = 0}, {.exchange = during}, given).step;
  EXPECT_DOUBLE_EQ(slowly.gradients.exposed(), slowly.gradients.bytes / 1e8);
}

TEST(ScalingPlan, DividesWhatItsStageShards) {
  TrainSettings settings = train_preset("gpt2");
  settings.batch_size = 4;
  const PlannedMemory whole = plan_of(settings, {}).memory;
  const auto of_four = [&](int shard) {
    return plan_of(settings, {.nodes = 4}, {.shard = shard}).memory;
  };
  EXPECT_EQ(of_four(1).moments, whole.moments / 4);
  EXPECT_EQ(of_four(1).gradients, whole.gradients);
  EXPECT_EQ(of_four(2).gradients, whole.gradients / 4);
  EXPECT_EQ(of_four(2).parameters, whole.parameters);
  EXPECT_EQ(of_four(3).parameters, whole.parameters / 4);
  EXPECT_LT(of_four(3).activations, whole.activations / 3);
}

TEST(ScalingPlan, DividesSequencesThatAreShared) {
  TrainSettings settings = train_preset("gpt2");
  settings.batch_size = 1;
  settings.accumulation = 1;
  const ScalingPlan plan = plan_of(settings, {.nodes = 4}, {.sequence_parallel = 4});
  EXPECT_EQ(plan.own_sequences, 1);
  EXPECT_GT(plan.step.ring.bytes, 0);
  const ScalingPlan alone = plan_of(settings, {});
  EXPECT_DOUBLE_EQ(4 * plan.step.forward, alone.step.forward);
  EXPECT_LT(plan.memory.activations, 0.3 * static_cast<double>(alone.memory.activations));
}

TEST(ScalingPlan, ChoosesBatchesThatFit) {
  TrainSettings settings = planned_settings();
  settings.batch_size = 12;
  settings.accumulation = 40;
  // As they are, where they can be.
  EXPECT_EQ(plan_of(settings, two_nodes()).settings.accumulation, 40);
  // More processes than sequences in a batch: the fewest passes, as memory is not known.
  const ScalingPlan many = plan_of(settings, {.nodes = 16});
  EXPECT_EQ(many.settings.accumulation, 1);
  EXPECT_EQ(many.settings.batch_size, 480);
  EXPECT_EQ(many.own_sequences, 30);
  // In memory for one sequence at a time.
  settings.batch_size = 480;
  settings.accumulation = 1;
  TrainSettings single = settings;
  single.batch_size = 1;
  const double enough = static_cast<double>(training_memory(single).total()) * 1.01;
  const ScalingPlan little = plan_of(settings, {.memory_per_node = enough});
  EXPECT_TRUE(little.fits);
  EXPECT_EQ(little.settings.accumulation, 480);
  const ScalingPlan none = plan_of(settings, {.memory_per_node = 1000});
  EXPECT_FALSE(none.fits);
  EXPECT_EQ(none.limit, PlanLimit::memory);
}

TEST(ScalingPlan, FindsTheFewestNodesThatHoldAModel) {
  TrainSettings settings = train_preset("gpt3");
  settings.batch_size = 1536;
  settings.accumulation = 1;
  settings.recompute = true;
  const Cluster cluster{.nodes = 1, .memory_per_node = 512e9};
  EXPECT_FALSE(min_nodes(settings, cluster, {.shard = 1}).has_value());
  const auto enough = min_nodes(settings, cluster, {.shard = 3});
  ASSERT_TRUE(enough.has_value());
  Cluster tried = cluster;
  tried.nodes = *enough;
  EXPECT_TRUE(plan_of(settings, tried, {.shard = 3}).fits);
  tried.nodes = *enough - 1;
  EXPECT_FALSE(plan_of(settings, tried, {.shard = 3}).fits);
  EXPECT_FALSE(min_nodes(settings, {}, {}).has_value());  // of unknown memory
}

TEST(ScalingPlan, SweepsBeyondTheCluster) {
  const auto plans = sweep_nodes(planned_settings(), {.nodes = 3}, {}, small_rates());
  std::vector<std::int64_t> nodes;
  for (const ScalingPlan& plan : plans) nodes.push_back(plan.cluster.nodes);
  EXPECT_EQ(nodes, (std::vector<std::int64_t>{1, 2, 3, 4, 8}));  // not 16: there are 8 sequences
}

TEST(ScalingPlan, SaysWhatLimits) {
  TrainSettings settings = planned_settings();
  EXPECT_EQ(plan_of(settings, {.nodes = 2, .bandwidth = 1e12, .latency = 0}).limit,
            PlanLimit::compute);
  EXPECT_EQ(plan_of(settings, {.nodes = 2, .bandwidth = 1e12, .latency = 1}).limit,
            PlanLimit::latency);
  // One of eight processes computes two sequences, and the others wait.
  settings.model = make_gpt_config(2, 2, 32, 256, 64);
  settings.batch_size = 9;
  const ScalingPlan uneven = plan_of(settings, {.nodes = 8, .bandwidth = 1e12, .latency = 0});
  EXPECT_EQ(uneven.own_sequences, 2);
  EXPECT_LT(uneven.efficiency, 0.6);
  EXPECT_EQ(uneven.limit, PlanLimit::batch);
}

TEST(ScalingPlan, RefusesWhatNoClusterHas) {
  const auto refused = [](const Cluster& cluster, const char* what) {
    expect_error(
        ErrorCode::invalid_argument, [&] { plan_of(planned_settings(), cluster); }, what);
  };
  refused({.nodes = 0}, "nodes must be between 1");
  refused({.nodes = -3}, "not -3");
  refused({.processes_per_node = 0}, "processes on a node");
  refused({.cores_per_node = 0}, "cores");
  refused({.cores_per_node = nothing}, "cores");
  refused({.memory_per_node = -1}, "memory");
  refused({.bandwidth = 0}, "bandwidth");
  refused({.bandwidth = nothing}, "bandwidth");
  refused({.latency = -1}, "latency");
  refused({.latency = infinity}, "latency");
  refused({.price_per_node_hour = -1}, "price");
  refused({.nodes = 9}, "9 processes cannot share 8 sequences");
}

TEST(ScalingPlan, RefusesWhatNoRunHas) {
  const auto refused = [](const Distribution& distribution, const char* what) {
    expect_error(
        ErrorCode::invalid_argument,
        [&] { plan_of(planned_settings(), {.nodes = 4}, distribution); }, what);
  };
  refused({.shard = 4}, "between 1 and 3, not 4");
  refused({.shard = 0}, "between 1 and 3");
  refused({.sequence_parallel = 3}, "rings of 3");
  refused({.sequence_parallel = 0}, "rings of 0");
  expect_error(
      ErrorCode::invalid_argument,
      [] { plan_scaling(planned_settings(), {}, {}, TrainingRates::uniform(0, 1)); }, "operations");
  expect_error(
      ErrorCode::invalid_argument,
      [] { plan_scaling(planned_settings(), {}, {}, TrainingRates::uniform(1, nothing)); },
      "memory");
  TrainSettings settings = planned_settings();
  settings.batch_size = 0;
  expect_error(
      ErrorCode::invalid_argument, [&] { plan_of(settings, {}); }, "batch_size");
  expect_error(
      ErrorCode::unsupported, [] { plan_of(train_preset("multi30k-en-de"), {}); }, "translators");
  expect_error(
      ErrorCode::invalid_argument, [] { training_bill(plan_of(planned_settings(), {}), 0); },
      "tokens");
}

}  // namespace
}  // namespace heed
