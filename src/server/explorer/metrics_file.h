// The metrics that a run writes, one JSON document a line, read from an untrusted file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/json.h"

namespace heed::server {

// Limits of one request. With the defaults, a run of millions of steps takes less than a second and
// some tens of MiB.
struct MetricsLimits {
  std::int64_t max_bytes = std::int64_t{256} << 20;  // of the file, from its end
  std::int64_t max_rows = 4000;                      // of each series
  std::size_t max_series = 16;
  std::int64_t max_line = std::int64_t{1} << 20;   // bytes; longer lines are passed over
  std::int64_t max_text = std::int64_t{16} << 20;  // bytes of all rows together
};

struct MetricsRows {
  std::vector<Json> rows;   // objects with a whole "step", in the file's order
  bool is_thinned = false;  // whether lines were left out to stay within the limits
};

// The lines of steps from `from` on. Lines of one kind (a step's loss, an evaluation, a sample) are
// a series; one that is too long is thinned evenly, and its first and last line always stay. Lines
// that are incomplete, not valid JSON or without a step are skipped. A missing file has no rows.
// Throws Error{invalid_argument} for what is not a regular file.
MetricsRows read_metrics(const std::filesystem::path& file, std::int64_t from,
                         const MetricsLimits& limits = {});

// The last step in the lines at the end of the file; 0 if there is none.
std::int64_t last_step(const std::filesystem::path& file);

// Reads lines as they are appended. An incomplete last line is left for the next call.
class MetricsReader {
 public:
  explicit MetricsReader(std::filesystem::path file) : file_(std::move(file)) {}

  // Skips all complete lines.
  void skip_to_end();

  // The lines appended since the last call, as many as one read of 1 MiB holds: call again until
  // there are none. After the file became shorter, because a run was resumed, the lines of its last
  // MiB.
  std::vector<Json> read_new();

 private:
  std::filesystem::path file_;
  std::int64_t position_ = 0;  // where the next line begins
};

}  // namespace heed::server
