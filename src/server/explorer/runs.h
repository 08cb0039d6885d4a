// The training runs that the server knows: named at the start, recorded, or trained by itself; and
// nothing else on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"

namespace heed::server {

enum class RunOrigin {
  given,     // named by the user
  recorded,  // comes with heed
  live,      // trained by a server
};

// Can be used by several threads at once.
class Runs {
 public:
  // Given runs; throws what add() throws.
  explicit Runs(const std::vector<std::filesystem::path>& directories);

  // Adds a run, named by its last folder, with a number if that is taken, and returns its name; a
  // live one that is known already keeps its name. Throws Error{not_found} for a directory that
  // holds no run.
  std::string add(const std::filesystem::path& directory, RunOrigin origin);

  // Adds the runs in a directory of live runs, in the order of their names: those that can be read,
  // none where it is absent. Runs that begin there later, as of another process, are found when
  // they are asked for.
  void add_live_runs(const std::filesystem::path& directory);

  std::vector<std::string> names() const;

  // The document of all runs in their current state; for a run that cannot be read, its name and
  // the error.
  OrderedJson describe() const;

  // The model directory of a checkpoint. Throws Error{not_found} with the checkpoints that exist.
  std::filesystem::path checkpoint(const std::string& run, std::int64_t step) const;

  // RunDirectory::is_finished() of a run; a recorded one is finished.
  bool is_finished(const std::string& run) const;

  // The file that a run writes its metrics to.
  std::filesystem::path metrics_file(const std::string& run) const;

 private:
  struct Run {
    std::string name;
    std::filesystem::path directory;
    RunOrigin origin = RunOrigin::given;
  };
  std::string insert(const std::filesystem::path& directory, RunOrigin origin) const;
  void look_for_live_runs() const;
  Run find(const std::string& name) const;
  std::vector<Run> all() const;
  std::vector<std::int64_t> checkpoints(const Run& run) const;
  OrderedJson describe(const Run& run) const;
  OrderedJson describe_or_say_why(const Run& run) const;

  mutable std::mutex mutex_;
  mutable std::vector<Run> runs_;    // grows as live runs are found
  std::filesystem::path live_runs_;  // empty: none; set before requests are answered
};

}  // namespace heed::server
