// The parameters of a run's last evaluations, in files, and their mean (checkpoint averaging).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "train/shards.h"

namespace heed {

class RecentParameters {
 public:
  // Keeps those of the last `most` evaluations in `directory`; 0: none.
  RecentParameters(std::filesystem::path directory, std::int64_t most);

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
  std::int64_t most_;
};

}  // namespace heed
