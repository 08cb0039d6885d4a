#include "engine/plan/scaling_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "model/parameter_count.h"
#include "model/parameters.h"
#include "model/vocabulary.h"
#include "train/memory.h"

namespace heed {
namespace {

constexpr double as_double(std::int64_t count) { return static_cast<double>(count); }

constexpr double number_bytes = sizeof(float);

// Numbers that are exchanged at once: 4 MiB.
constexpr std::int64_t bucket_numbers = std::int64_t{1} << 20;
// Messages beyond this begin with a question and an answer (MPI's rendezvous, Open MPI's limit for
// TCP): three crossings of the link instead of one.
constexpr double eager_bytes = 1 << 16;
// Buckets on their way at the same time, where exchanges overlap.
constexpr double max_under_way = 8;
// Exchanges of one number in each step: two sums and a list of times with the loss, the norm, the
// factor of the learning rate, three about evaluations, and a request to stop (trainer.cc).
constexpr double small_exchanges = 9;

// Passes over memory, in numbers of the arena.
constexpr double clear_passes = 1;
constexpr double norm_passes = 1;
constexpr double adamw_passes = 7;  // four arrays read, three written

std::int64_t rounded_up(std::int64_t count, std::int64_t parts) {
  return (count + parts - 1) / parts;
}

std::int64_t sequence_groups(const Cluster& cluster, const Distribution& distribution) {
  return cluster.processes() / distribution.sequence_parallel;
}

std::int64_t own_sequences(const TrainSettings& settings, const Cluster& cluster,
                           const Distribution& distribution) {
  return rounded_up(settings.batch_size, sequence_groups(cluster, distribution));
}

// What formulas ask of a run again and again.
struct PlannedRun {
  const TrainSettings& settings;
  const Cluster& cluster;
  const Distribution& distribution;
  const TrainingRates& rates;
  double numbers = 0;  // of the arena
  double processes = 1;
  double passes = 1;      // forward and backward, in a step
  double own_tokens = 0;  // in each of them

  double speed(double per_core) const { return per_core * cluster.cores_per_process(); }
  int shard() const { return distribution.shard; }
  bool is_alone() const { return processes == 1; }
  bool overlaps() const { return distribution.exchange == Distribution::Exchange::during_backward; }
  double wire_bytes() const { return distribution.wire == Distribution::Wire::bf16 ? 2 : 4; }
  double buckets() const { return std::ceil(numbers / as_double(bucket_numbers)); }
  // Whether the tables of the vocabulary come in pieces.
  bool divides_tables() const {
    return !is_alone() && shard() == 3 && table_piece_rows({.stacks = {settings.model}}) > 0;
  }
};

// Seconds that the core spends on sending and receiving so many bytes, whatever else happens
// meanwhile.
double copy_seconds(const PlannedRun& run, double bytes) {
  return bytes / run.speed(run.rates.copy_rate());
}

// The shares that overlap with nothing: of what is exchanged, the part of the model that is
// computed last, or waited for first (a block and the embeddings); of the computing, a block.
struct OpenShares {
  double exchange;
  double computing;
};

// Of the embeddings, in all parameters.
double table_share(const PlannedRun& run) {
  const ParameterCount count = count_parameters(run.settings.model);
  return std::min(as_double(count.embedding + count.position) / run.numbers, 1.0);
}

OpenShares open_shares(const PlannedRun& run) {
  const double embeddings = table_share(run);
  const double block = 1 / as_double(run.settings.model.layers);
  return {.exchange = embeddings + (1 - embeddings) * block, .computing = block};
}

// Seconds of an exchange that pass while `available` seconds of computing go on.
double hidden_seconds(const PlannedRun& run, const PlannedExchange& exchange, double available,
                      double bytes) {
  const OpenShares open = open_shares(run);
  const double seconds = exchange.seconds();
  const double hidden = std::max(available, 0.0) * (1 - open.computing);
  const double exposed = std::max(seconds * open.exchange, seconds - hidden);
  return std::max(seconds - std::max(exposed, copy_seconds(run, bytes)), 0.0);
}

// `bytes` to and from every other process, `rounds` times. Node links carry what goes to other
// nodes; the rest, and all copies, pass through the memory of the node.
PlannedExchange exchange(const PlannedRun& run, double bytes, double rounds) {
  if (run.is_alone()) return {};
  const double neighbours = as_double(run.cluster.processes_per_node);
  const double others = run.processes - 1;
  const double to_nodes = bytes * (run.processes - neighbours) / others;
  const double link = to_nodes * neighbours / run.cluster.bandwidth;
  const double message = bytes / std::max(rounds, 1.0) / others;
  const double crossings = message > eager_bytes ? 3 : 1;
  const double waits = std::ceil(rounds / (run.overlaps() ? max_under_way : 1));
  const bool crosses = run.cluster.nodes > 1;
  return {.bytes = to_nodes,
          .transfer = std::max(link, copy_seconds(run, bytes)),
          .latency = crosses ? waits * crossings * run.cluster.latency : 0};
}

// Bytes of a share of the arena, of each process to every other: a reduce-scatter or an all-gather.
double share_bytes(const PlannedRun& run, double bytes_each) {
  return run.numbers * bytes_each * (run.processes - 1) / run.processes;
}

// Logits of a pass do not fit in a chunk.
bool computes_logits_twice(const PlannedRun& run) {
  const auto rows = static_cast<std::int64_t>(run.own_tokens);
  const std::int64_t vocabulary = run.settings.model.vocabulary_size;
  const std::int64_t chunk = VocabularyLoss::bytes_needed(vocabulary, rows);
  return as_double(chunk) < number_bytes * run.own_tokens * as_double(vocabulary);
}

void compute_passes(const PlannedRun& run, PlannedStep& step) {
  const StackSpecification& model = run.settings.model;
  const ParameterCount count = count_parameters(model);
  const double tokens = run.passes * run.own_tokens;
  const double block = 2 * as_double(count.attention_total + count.feed_forward_total) +
                       attention_flops_per_token(model, run.settings.sequence());
  const double ends = 2 * as_double(model.vocabulary_size) * as_double(model.channels);
  const double forward = tokens * block / run.speed(run.rates.block_forward);
  const double unembedding = tokens * ends / run.speed(run.rates.ends);
  step.forward = forward + unembedding;
  step.backward = 2 * tokens * block / run.speed(run.rates.block_backward) + 2 * unembedding +
                  (run.settings.recompute ? forward : 0);
  if (run.divides_tables() && computes_logits_twice(run)) step.backward += unembedding;
}

double update_seconds(const PlannedRun& run) {
  const double own = run.numbers / run.processes;
  const double cleared = run.shard() >= 2 ? own : run.numbers;
  // Of P processes' numbers the first is copied, and each other read and added; or all at once.
  const double terms = run.overlaps() ? run.processes + 1 : 3 * run.processes - 1;
  const double sums = run.is_alone() ? 0 : run.numbers / run.processes * terms;
  const double times = run.shard() >= 2 ? run.passes : 1;
  const double passes = clear_passes * cleared + (norm_passes + adamw_passes) * own + sums * times;
  return number_bytes * passes / run.speed(run.rates.memory);
}

PlannedExchange gradient_exchange(const PlannedRun& run, double backward) {
  // Sharded gradients cannot wait for the last pass.
  const double times = run.shard() >= 2 ? run.passes : 1;
  const double bytes = share_bytes(run, run.wire_bytes());
  PlannedExchange gradients = exchange(run, times * bytes, times * run.buckets());
  if (run.overlaps()) {
    gradients.hidden = hidden_seconds(run, gradients, times * backward / run.passes, times * bytes);
  }
  return gradients;
}

// After the update, while the next forward pass begins; parameters that no process has whole, for
// each forward and each backward pass.
PlannedExchange parameter_exchange(const PlannedRun& run, const PlannedStep& step) {
  double times = run.shard() == 3 ? 2 * run.passes : 1;
  // The unembedding reads its pieces once for the sums and once backward.
  if (run.divides_tables()) times += run.passes * table_share(run);
  const double bytes = times * share_bytes(run, number_bytes);
  PlannedExchange parameters = exchange(run, bytes, times * run.buckets());
  if (run.overlaps()) {
    const double available = run.shard() == 3 ? step.forward + step.backward - step.gradients.hidden
                                              : step.forward / run.passes;
    parameters.hidden = hidden_seconds(run, parameters, available, bytes);
  }
  return parameters;
}

// Keys and values go round the ring forward; backward they do again, and their gradients with them,
// once more to where they belong.
PlannedExchange ring_exchange(const PlannedRun& run, double computing) {
  const double members = as_double(run.distribution.sequence_parallel);
  if (members == 1) return {};
  const StackSpecification& model = run.settings.model;
  const double once =
      run.own_tokens * 2 * as_double(model.block.attention.key_value_width()) * number_bytes;
  const double hops = (members - 1) + (members - 1) + members;
  const double rounds = run.passes * as_double(model.layers) * hops;
  const double bytes = once * rounds;
  const bool crosses = members > as_double(run.cluster.processes_per_node);
  const double link = crosses ? bytes / run.cluster.bandwidth : 0;
  const double crossings = once > eager_bytes ? 3 : 1;
  PlannedExchange ring{.bytes = crosses ? bytes : 0,
                       .transfer = std::max(link, copy_seconds(run, bytes)),
                       .latency = crosses ? rounds * crossings * run.cluster.latency : 0};
  // Attention to what is here hides what comes.
  const double share =
      attention_flops_per_token(model, run.settings.sequence()) / model_cost(model).flops_per_token;
  ring.hidden =
      std::min(ring.seconds(), std::min(share, 1.0) * computing * (members - 1) / members);
  return ring;
}

// A process' share of the settings.
TrainSettings own_settings(const TrainSettings& settings, const Cluster& cluster,
                           const Distribution& distribution) {
  TrainSettings own = settings;
  own.batch_size = own_sequences(settings, cluster, distribution);
  own.sequence_length = rounded_up(settings.sequence(), distribution.sequence_parallel);
  return own;
}

// The largest run of parameters that a pass needs at once: a block, or what comes before or after
// the blocks.
std::int64_t largest_part(const StackSpecification& model, int shard) {
  const Architecture architecture{.stacks = {model}};
  std::size_t largest = 0;
  for (const PartRange& range :
       part_ranges(architecture, shard == 3 ? table_piece_rows(architecture) : 0)) {
    largest = std::max(largest, range.end - range.begin);
  }
  return static_cast<std::int64_t>(largest);
}

PlannedMemory planned_memory(const TrainSettings& settings, const Cluster& cluster,
                             const Distribution& distribution) {
  const TrainingMemory whole = training_memory(own_settings(settings, cluster, distribution));
  const std::int64_t processes = cluster.processes();
  const auto sharded = [&](std::int64_t bytes, int stage) {
    return distribution.shard >= stage ? rounded_up(bytes, processes) : bytes;
  };
  PlannedMemory memory{.parameters = sharded(whole.parameters, 3),
                       .gradients = sharded(whole.gradients, 2),
                       .moments = rounded_up(whole.moments, processes),
                       .activations = whole.activations,
                       .working = whole.working};
  if (processes == 1) return memory;
  const std::int64_t part = 4 * largest_part(settings.model, distribution.shard);
  memory.exchange = bucket_numbers * 4;
  // Gradients of what is computed, and of two that leave.
  if (distribution.shard >= 2) memory.exchange += 3 * part;
  if (distribution.shard == 3) memory.exchange += 2 * part;  // parameters of this and the next
  if (distribution.sequence_parallel > 1) {
    // Keys and values that are here and that come, and both gradients.
    memory.exchange += 4 * 4 * 2 * settings.model.block.attention.key_value_width() *
                       own_sequences(settings, cluster, distribution) *
                       rounded_up(settings.sequence(), distribution.sequence_parallel);
  }
  return memory;
}

bool fits(const PlannedMemory& memory, const Cluster& cluster) {
  return cluster.memory_per_node == 0 ||
         as_double(memory.total()) * as_double(cluster.processes_per_node) <=
             cluster.memory_per_node;
}

PlannedStep planned_step(const TrainSettings& settings, const Cluster& cluster,
                         const Distribution& distribution, const TrainingRates& rates) {
  const std::int64_t positions = rounded_up(settings.sequence(), distribution.sequence_parallel);
  const PlannedRun run{.settings = settings,
                       .cluster = cluster,
                       .distribution = distribution,
                       .rates = rates,
                       .numbers = as_double(parameter_layout({.stacks = {settings.model}}).size()),
                       .processes = as_double(cluster.processes()),
                       .passes = as_double(settings.accumulation),
                       .own_tokens = as_double(own_sequences(settings, cluster, distribution)) *
                                     as_double(positions)};
  PlannedStep step;
  compute_passes(run, step);
  step.update = update_seconds(run);
  step.gradients = gradient_exchange(run, step.backward);
  step.parameters = parameter_exchange(run, step);
  step.ring = ring_exchange(run, step.forward + step.backward);
  if (cluster.nodes > 1) step.agreement = small_exchanges * cluster.latency;
  return step;
}

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
