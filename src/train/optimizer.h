// AdamW over the arena of parameters: weight decay on matrices only, gradients clipped by norm. And
// the mean of recent parameters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "model/parameters.h"
#include "train/settings.h"
#include "train/shards.h"

namespace heed {

// What an update is told besides gradients.
struct UpdateScale {
  double gradient_norm = 0;  // of all gradients, before clipping
  double rate_factor = 1;    // of the schedule's learning rate
};

class Optimizer {
 public:
  Optimizer(const ArenaLayout& layout, const TrainSettings& settings);
  Optimizer(const StackSpecification& config, const TrainSettings& settings)
      : Optimizer(parameter_layout({.stacks = {config}}), settings) {}
  // Updates only the parameters in ascending ranges of the arena, and has moments of no others.
  Optimizer(const ArenaLayout& layout, const TrainSettings& settings,
            const std::vector<ArenaRange>& own);

  // Where moments lie from now on, and parameters and gradients that it is given.
  void place(Device device);

  // The squared norm of its parameters' gradients.
  double squared_norm(const Gradients& gradients) const;

  // Updates its parameters. `step` counts from 0.
  void update(std::int64_t step, const Gradients& gradients, Parameters& parameters,
              const UpdateScale& scale);
  // The same for all parameters, by the norm of all gradients, which it returns.
  double update(std::int64_t step, const Gradients& gradients, Parameters& parameters);

  // The moments of its parameters, one range after the other, where they lie.
  std::span<const float> first_moment() const { return first_moment_.span(); }
  std::span<const float> second_moment() const { return second_moment_.span(); }

  // Sets the moments of a range of the arena from a file's; those of other parameters are skipped.
  void set_moments(const ArenaRange& range, std::span<const std::byte> first,
                   std::span<const std::byte> second);

 private:
  // A run of the arena whose tensors decay alike, and where its moments are.
  struct Piece {
    ArenaRange range;
    std::size_t moment = 0;
    bool decays = false;
  };

  // The parts of a run that are `own`, with their moments.
  void add_pieces(const Piece& run, const std::vector<ArenaRange>& own);

  TrainSettings settings_;
  std::vector<Piece> pieces_;  // ascending
  Tensor<float> first_moment_;
  Tensor<float> second_moment_;
};

// The learning rate over the steps of a run. For step 0, 1, …: rises linearly over warmup_steps,
// then falls from learning_rate to min_learning_rate at decay_steps along a line or half a cosine,
// and stays there. Or it falls as 1/√step, without an end (Vaswani et al. 2017, 5.3).
double learning_rate_at(const TrainSettings& settings, std::int64_t step);

// How large the gradients of a part of the model are.
struct PartNorm {
  std::string part;  // "embedding", the block's number from "0" on, "final"
  double norm = 0;   // Euclidean, of the gradients of all its parameters
};

// The norm of each part, in the order of the arena: "embedding", "0", …, "final"; of an encoder and
// a decoder "encoder.embedding", "encoder.0", …, "decoder.final". A tied unembedding counts with
// the embedding. Each process of a group has the gradients of its own ranges, and gets the norms of
// all.
std::vector<PartNorm> gradient_norms(const Architecture& architecture, const Gradients& gradients,
                                     const std::vector<ArenaRange>& own, Group& group);

// The parameters of a run's last evaluations, in files, and their mean (checkpoint averaging).
class RecentParameters {
 public:
  // Keeps those of the last `max_count` evaluations in `directory`; 0: none.
  RecentParameters(std::filesystem::path directory, std::int64_t max_count);

  // Removes what a run that is resumed after `step` will write again.
  void forget_after(std::int64_t step);

  // Writes those of `step`, `size` numbers, atomically, then removes what is too old.
  struct Parameters {
    NumberStream numbers;
    std::int64_t size = 0;
  };
  void add(std::int64_t step, const Parameters& parameters);

  std::int64_t count() const;  // that are there

  // Fills ranges of `parameters` with the mean of all that are there, and returns their number.
  // Throws Error{corrupt_data} for a file of another model.
  std::int64_t average(std::span<float> parameters, const std::vector<ArenaRange>& ranges) const;

 private:
  std::vector<std::int64_t> steps() const;  // ascending
  std::filesystem::path file(std::int64_t step) const;

  std::filesystem::path directory_;
  std::int64_t max_count_;
};

}  // namespace heed
