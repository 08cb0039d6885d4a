// The parts of a scaling plan: the batches of each process, and what they take.
#pragma once

#include "engine/plan/scaling_plan.h"

namespace heed {

constexpr double as_double(std::int64_t count) { return static_cast<double>(count); }

// Processes that compute different sequences.
std::int64_t sequence_groups(const Cluster& cluster, const Distribution& distribution);

// Sequences of one forward pass, of the process that has most of them.
std::int64_t own_sequences(const TrainSettings& settings, const Cluster& cluster,
                           const Distribution& distribution);

PlannedMemory planned_memory(const TrainSettings& settings, const Cluster& cluster,
                             const Distribution& distribution);

// True where the memory of a node is not known.
bool fits(const PlannedMemory& memory, const Cluster& cluster);

PlannedStep planned_step(const TrainSettings& settings, const Cluster& cluster,
                         const Distribution& distribution, const TrainingRates& rates);

}  // namespace heed
