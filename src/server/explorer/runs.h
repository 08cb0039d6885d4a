// The training runs named at the start, and nothing else on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace heed::server {

class Runs {
 public:
  // Throws Error{not_found} for a directory that holds no run. Runs are named by their last folder,
  // with a number if two are equal.
  explicit Runs(const std::vector<std::filesystem::path>& directories);

  std::vector<std::string> names() const;

  // The document of all runs in their current state; for a run that cannot be read, its name and
  // the error.
  OrderedJson describe() const;

  // The model directory of a checkpoint. Throws Error{not_found} with the checkpoints that exist.
  std::filesystem::path checkpoint(const std::string& run, std::int64_t step) const;

  // RunDirectory::is_finished() of a run.
  bool is_finished(const std::string& run) const;

  // The file that a run writes its metrics to.
  std::filesystem::path metrics_file(const std::string& run) const;

 private:
  struct Run {
    std::string name;
    std::filesystem::path directory;
  };
  const Run& find(const std::string& name) const;
  std::vector<std::int64_t> checkpoints(const Run& run) const;
  OrderedJson describe(const Run& run) const;
  OrderedJson describe_or_say_why(const Run& run) const;

  std::vector<Run> runs_;
};

}  // namespace heed::server
