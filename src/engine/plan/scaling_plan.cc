#include "engine/plan/scaling_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "engine/plan/scaling_parts.h"
#include "model/parameter_count.h"

namespace heed {
namespace {

// Bounds above any cluster, low enough that products of counts fit in 63 bits.
constexpr std::int64_t max_nodes = std::int64_t{1} << 24;
constexpr std::int64_t max_processes_per_node = std::int64_t{1} << 12;
constexpr double max_cores = 1 << 20;

constexpr double good_efficiency = 0.8;

void require_count(std::int64_t value, std::int64_t most, const char* name) {
  require(value >= 1 && value <= most, ErrorCode::invalid_argument,
          "a cluster's {} must be between 1 and {}, not {}", name, most, value);
}

void require_above_zero(double value, const char* name) {
  require(value > 0, ErrorCode::invalid_argument, "{} must be a number above 0, not {}", name,
          value);
}

void require_not_below_zero(double value, const char* name) {
  require(value >= 0 && std::isfinite(value), ErrorCode::invalid_argument,
          "{} must be 0 or more, not {}", name, value);
}

// Sequences a step, and in how many passes.
std::int64_t sequences_per_step(const TrainSettings& settings) {
  return settings.batch_size * settings.accumulation;
}

// The settings whose batches the cluster computes (plan_scaling).
TrainSettings fitting_settings(const TrainSettings& settings, const Cluster& cluster,
                               const Distribution& distribution) {
  const std::int64_t groups = sequence_groups(cluster, distribution);
  const std::int64_t sequences = sequences_per_step(settings);
  require(groups <= sequences, ErrorCode::invalid_argument,
          "{} processes cannot share {} sequences a step: each takes whole ones; plan fewer nodes, "
          "or raise batch_size",
          cluster.processes(), sequences);
  const auto suffices = [&](const TrainSettings& tried) {
    return fits(planned_memory(tried, cluster, distribution), cluster);
  };
  TrainSettings found = settings;
  if (settings.batch_size >= groups && suffices(settings)) return found;
  for (std::int64_t passes = 1; passes <= sequences / groups; ++passes) {
    if (sequences % passes != 0) continue;
    found.accumulation = passes;
    found.batch_size = sequences / passes;
    if (suffices(found)) break;
  }
  return found;
}

// Without the links: the step of one process that has all sequences and all memory.
double seconds_alone(const TrainSettings& settings, const Cluster& cluster,
                     const Distribution& distribution, const TrainingRates& rates) {
  Cluster one = cluster;
  one.nodes = one.processes_per_node = 1;
  one.cores_per_node = cluster.cores_per_process();
  Distribution alone = distribution;
  alone.sequence_parallel = 1;
  return planned_step(settings, one, alone, rates).total();
}

// Memory where it does not suffice; computing where little is lost; else what loses most.
PlanLimit find_limit(const ScalingPlan& plan) {
  if (!plan.fits) return PlanLimit::memory;
  if (plan.efficiency >= good_efficiency) return PlanLimit::compute;
  const PlannedStep& step = plan.step;
  double transfer = 0, latency = step.agreement;
  for (const PlannedExchange* each : {&step.gradients, &step.parameters, &step.ring}) {
    if (each->seconds() <= 0) continue;
    transfer += each->exposed() * each->transfer / each->seconds();
    latency += each->exposed() * each->latency / each->seconds();
  }
  // Computing that sequences shared out evenly would not need.
  const double groups = as_double(sequence_groups(plan.cluster, plan.distribution));
  const double even = as_double(plan.settings.batch_size) / groups / as_double(plan.own_sequences);
  const double uneven = (step.forward + step.backward) * (1 - even);
  const std::array<std::pair<double, PlanLimit>, 3> losses{{{uneven, PlanLimit::batch},
                                                            {transfer, PlanLimit::bandwidth},
                                                            {latency, PlanLimit::latency}}};
  return std::ranges::max_element(losses, {}, &std::pair<double, PlanLimit>::first)->second;
}

void validate(const TrainSettings& settings, const Cluster& cluster,
              const Distribution& distribution) {
  require(settings.task != Task::pairs, ErrorCode::unsupported,
          "plans are for training on text: translators are trained by one process");
  settings.validate();
  cluster.validate();
  distribution.validate(cluster.processes());
  require(distribution.sequence_parallel <= settings.sequence(), ErrorCode::invalid_argument,
          "{} processes cannot share sequences of {} tokens", distribution.sequence_parallel,
          settings.sequence());
}

}  // namespace

std::string_view plan_limit_name(PlanLimit limit) {
  switch (limit) {
    case PlanLimit::memory: return "memory";
    case PlanLimit::batch: return "batch";
    case PlanLimit::bandwidth: return "bandwidth";
    case PlanLimit::latency: return "latency";
    case PlanLimit::compute: return "compute";
  }
  return "";
}

void Cluster::validate() const {
  require_count(nodes, max_nodes, "nodes");
  require_count(processes_per_node, max_processes_per_node, "processes on a node");
  require_above_zero(cores_per_node, "a node's cores");
  require(cores_per_node <= max_cores, ErrorCode::invalid_argument,
          "a node's cores must be at most {}, not {}", max_cores, cores_per_node);
  require_above_zero(bandwidth, "the bandwidth of links");
  require_not_below_zero(latency, "the latency of links");
  require_not_below_zero(memory_per_node, "the memory of a node");
  require_not_below_zero(price_per_node_hour, "the price of a node");
}

void TrainingRates::validate() const {
  require_above_zero(block_forward, "the rate of operations");
  require_above_zero(block_backward, "the rate of operations");
  require_above_zero(ends, "the rate of operations");
  require_above_zero(memory, "the rate of memory");
  require_not_below_zero(copies, "the rate of copies");
}

void Distribution::validate(std::int64_t processes) const {
  require(shard >= 1 && shard <= 3, ErrorCode::invalid_argument,
          "the stage of sharding must be between 1 and 3, not {}", shard);
  require(sequence_parallel >= 1 && sequence_parallel <= processes &&
              processes % sequence_parallel == 0,
          ErrorCode::invalid_argument,
          "{} processes cannot be divided into rings of {} that share sequences", processes,
          sequence_parallel);
}

ScalingPlan plan_scaling(const TrainSettings& settings, const Cluster& cluster,
                         const Distribution& distribution, const TrainingRates& rates) {
  validate(settings, cluster, distribution);
  rates.validate();
  ScalingPlan plan{.settings = fitting_settings(settings, cluster, distribution),
                   .cluster = cluster,
                   .distribution = distribution};
  StackSpecification shape = settings.model;
  shape.context = settings.sequence();
  plan.parameters = count_parameters(settings.model).total;
  plan.sequences_per_step = sequences_per_step(settings);
  plan.own_sequences = own_sequences(plan.settings, cluster, distribution);
  plan.tokens_per_step = as_double(plan.sequences_per_step) * as_double(settings.sequence());
  plan.flops_per_token = model_cost(shape).train_flops_per_token;
  plan.memory = planned_memory(plan.settings, cluster, distribution);
  plan.fits = fits(plan.memory, cluster);
  plan.step = planned_step(plan.settings, cluster, distribution, rates);
  plan.alone_seconds = seconds_alone(plan.settings, cluster, distribution, rates);
  plan.efficiency = plan.alone_seconds / (as_double(cluster.processes()) * plan.step.total());
  plan.limit = find_limit(plan);
  return plan;
}

std::optional<std::int64_t> min_nodes(const TrainSettings& settings, const Cluster& cluster,
                                      const Distribution& distribution) {
  if (cluster.memory_per_node == 0) return std::nullopt;
  const std::int64_t ring = distribution.sequence_parallel;
  const std::int64_t most = sequences_per_step(settings) * ring / cluster.processes_per_node;
  const auto suffices = [&](std::int64_t nodes) {
    Cluster tried = cluster;
    tried.nodes = nodes;
    if (tried.processes() % ring != 0) return false;
    return fits(
        planned_memory(fitting_settings(settings, tried, distribution), tried, distribution),
        tried);
  };
  // Rings are whole on a multiple of these nodes.
  std::int64_t unit = 1;
  while (unit * cluster.processes_per_node % ring != 0) ++unit;
  std::int64_t too_few = 0, enough = 1;  // in units
  while (!suffices(enough * unit)) {
    too_few = enough;
    if (enough >= most / unit) return std::nullopt;
    enough = std::min(2 * enough, most / unit);
  }
  while (enough - too_few > 1) {
    const std::int64_t middle = (too_few + enough) / 2;
    (suffices(middle * unit) ? enough : too_few) = middle;
  }
  return enough * unit;
}

std::vector<ScalingPlan> sweep_nodes(const TrainSettings& settings, const Cluster& cluster,
                                     const Distribution& distribution, const TrainingRates& rates) {
  constexpr std::int64_t beyond = 4;  // times the cluster's nodes
  std::vector<std::int64_t> counts{cluster.nodes};
  for (std::int64_t nodes = 1; nodes <= beyond * cluster.nodes; nodes *= 2) {
    counts.push_back(nodes);
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<ScalingPlan> plans;
  for (const std::int64_t nodes : counts) {
    Cluster tried = cluster;
    tried.nodes = nodes;
    const bool has_rings = tried.processes() % distribution.sequence_parallel == 0;
    if (!has_rings || tried.processes() < distribution.sequence_parallel ||
        sequence_groups(tried, distribution) > sequences_per_step(settings)) {
      continue;
    }
    plans.push_back(plan_scaling(settings, tried, distribution, rates));
  }
  return plans;
}

TrainingBill training_bill(const ScalingPlan& plan, double tokens) {
  require(tokens > 0 && std::isfinite(tokens), ErrorCode::invalid_argument,
          "the tokens to train on must be a number above 0, not {}", tokens);
  TrainingBill bill{.tokens = tokens, .steps = std::ceil(tokens / plan.tokens_per_step)};
  bill.seconds = bill.steps * plan.step.total();
  bill.operations = tokens * plan.flops_per_token;
  bill.node_hours = bill.seconds / 3600 * as_double(plan.cluster.nodes);
  bill.price = bill.node_hours * plan.cluster.price_per_node_hour;
  return bill;
}

}  // namespace heed
