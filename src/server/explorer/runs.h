// Training runs that are watched: only what the directories named at the start hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace heed::server {

class Runs {
 public:
  // Throws Error{not_found} for a directory that holds no run. Runs are named by their last folder;
  // a second of the same name gets a number.
  explicit Runs(const std::vector<std::filesystem::path>& directories);

  std::vector<std::string> names() const;

  // The document of all runs, as they are now; of one that cannot be read, its name and why.
  OrderedJson describe() const;

  // The model directory of a checkpoint. Throws Error{not_found} with what there is.
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

// Lines of a metrics file, from a byte on. A line that is still being written is left for later.
class MetricsReader {
 public:
  explicit MetricsReader(std::filesystem::path file) : file_(std::move(file)) {}

  // The lines that were added since the last call; all again where the file became shorter.
  std::vector<Json> read_new();

 private:
  std::filesystem::path file_;
  std::int64_t position_ = 0;
};

}  // namespace heed::server
