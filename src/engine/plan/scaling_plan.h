// What a training run takes on a cluster: memory, time of a step, efficiency and days, predicted
// from the model's shape, the run's settings and the cluster's measured rates. A pure function,
// with no constants fitted to runs; docs/scaling.md has its formulas and how far they hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "train/settings.h"

namespace heed {

// Nodes that are alike, each with one link to a switch that all reach at full speed.
struct Cluster {
  std::int64_t nodes = 1;
  std::int64_t processes_per_node = 1;
  double cores_per_node = 1;       // a fraction where processes share cores: 0.5
  double memory_per_node = 0;      // bytes; 0: not known
  double bandwidth = 1.25e9;       // of a node's link, bytes a second in each direction
  double latency = 50e-6;          // seconds that a small message takes, one way
  double price_per_node_hour = 0;  // in any currency

  std::int64_t processes() const { return nodes * processes_per_node; }
  double cores_per_process() const {
    return cores_per_node / static_cast<double>(processes_per_node);
  }

  // Throws Error{invalid_argument} naming the first value that no cluster has.
  void validate() const;
};

// What one core sustains, as measured by the parts of a step on their own
// (engine/bench/training_rates.h), or as given. Operations are those that model_cost counts.
struct TrainingRates {
  double block_forward = 0;   // operations a second, of the blocks
  double block_backward = 0;  // and backward
  double ends = 0;    // operations a second of embedding, unembedding and loss, both directions
  double memory = 0;  // bytes a second of AdamW and sums: arrays read and written once
  // Bytes a second that a core sends and at the same time receives; 0: as memory suggests.
  double copies = 0;

  // Through the memory of the system bytes are read and written twice.
  double copy_rate() const { return copies > 0 ? copies : memory / 4; }

  static TrainingRates uniform(double operations, double bytes) {
    return {.block_forward = operations,
            .block_backward = operations,
            .ends = operations,
            .memory = bytes};
  }
  void validate() const;
};

// How processes share a run.
struct Distribution {
  // What each process keeps only a part of: moments (1), gradients too (2), parameters too (3). The
  // stages of ZeRO (Rajbhandari et al. 2020).
  int shard = 1;
  enum class Wire { f32, bf16 } wire = Wire::f32;  // numbers on the links
  std::int64_t sequence_parallel = 1;              // that share each sequence, in a ring
  // Whether gradients are exchanged while backward still runs, or after it.
  enum class Exchange { after_backward, during_backward } exchange = Exchange::after_backward;

  void validate(std::int64_t processes) const;
};

// Bytes of a process.
struct PlannedMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t moments = 0;
  std::int64_t activations = 0;  // of the blocks, kept for backward
  std::int64_t working = 0;      // as in TrainingMemory
  std::int64_t exchange = 0;     // what is received, and parameters that are gathered for a block

  std::int64_t total() const {
    return parameters + gradients + moments + activations + working + exchange;
  }
};

// What a process exchanges in a step.
struct PlannedExchange {
  double bytes = 0;     // that it sends, and receives, over its node's link
  double transfer = 0;  // seconds: bytes over links and through the memory of a node
  double latency = 0;   // seconds: messages, one after the other
  double hidden = 0;    // seconds of both that pass while the process computes

  double seconds() const { return transfer + latency; }
  double exposed() const { return seconds() - hidden; }
};

// Seconds of a step.
struct PlannedStep {
  double forward = 0;
  double backward = 0;  // including what is recomputed
  double update = 0;    // gradients cleared and, from all processes, added up; norm; AdamW
  PlannedExchange gradients;
  PlannedExchange parameters;
  PlannedExchange ring;  // keys and values of other processes, and their gradients
  double agreement = 0;  // losses, norms and requests to stop: small messages

  double compute() const { return forward + backward + update; }
  double exposed() const {
    return gradients.exposed() + parameters.exposed() + ring.exposed() + agreement;
  }
  double hidden() const { return gradients.hidden + parameters.hidden + ring.hidden; }
  double total() const { return compute() + exposed(); }
};

enum class PlanLimit {
  memory,     // it does not fit
  batch,      // processes wait for those that have a sequence more
  bandwidth,  // bytes over links
  latency,    // messages
  compute,
};
std::string_view plan_limit_name(PlanLimit limit);

struct ScalingPlan {
  TrainSettings settings;  // batch_size and accumulation as planned
  Cluster cluster;
  Distribution distribution;
  std::int64_t parameters = 0;          // of the model, as `heed params` counts them
  std::int64_t sequences_per_step = 0;  // of all processes
  std::int64_t own_sequences = 0;       // of the process with most, in a forward pass
  double tokens_per_step = 0;
  double flops_per_token = 0;  // forward and backward
  PlannedMemory memory;
  bool fits = true;  // true, too, where the memory of a node is not known
  PlannedStep step;
  // The same step computed by one process as fast as these, with memory enough and no links.
  double alone_seconds = 0;
  double efficiency = 0;  // alone / (processes · step)
  PlanLimit limit = PlanLimit::compute;

  double tokens_per_second() const { return tokens_per_step / step.total(); }
  double flops_per_second() const { return tokens_per_second() * flops_per_token; }
};

// The run that `settings` describe: their batch_size and accumulation where every process gets a
// sequence and the memory suffices, else those that take as many sequences a step in the largest
// batches that do. Throws Error{invalid_argument}: values that no cluster or run has, more
// processes than sequences a step; Error{unsupported}: training on pairs.
ScalingPlan plan_scaling(const TrainSettings& settings, const Cluster& cluster,
                         const Distribution& distribution, const TrainingRates& rates);

// The fewest nodes of the cluster's kind whose memory suffices; nothing where that is not known or
// no number of nodes does.
std::optional<std::int64_t> min_nodes(const TrainSettings& settings, const Cluster& cluster,
                                      const Distribution& distribution);

// Plans for 1, 2, 4, … nodes to beyond the cluster's, as far as there are sequences for them, and
// for the cluster's number.
std::vector<ScalingPlan> sweep_nodes(const TrainSettings& settings, const Cluster& cluster,
                                     const Distribution& distribution, const TrainingRates& rates);

// What training on a number of tokens takes.
struct TrainingBill {
  double tokens = 0;
  double steps = 0;
  double seconds = 0;
  double operations = 0;
  double node_hours = 0;
  double price = 0;  // 0: none is known

  double days() const { return seconds / 86400; }
};
// Throws Error{invalid_argument} for a number of tokens that is not above 0.
TrainingBill training_bill(const ScalingPlan& plan, double tokens);

}  // namespace heed
