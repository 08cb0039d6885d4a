// The files of a run directory from any bytes: the explorer reads rows or throws Error, and
// whatever metrics.jsonl holds, the rows stay within their limits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "server/explorer/metrics_file.h"
#include "server/explorer/runs.h"
#include "train/run_directory.h"
#include "train/training_state.h"

namespace {

namespace fs = std::filesystem;

// One directory, as one process is one fuzzer.
const fs::path& directory() {
  static const fs::path path = [] {
    std::string pattern = (fs::temp_directory_path() / "heed-fuzz-run-XXXXXX").string();
    return fs::path(mkdtemp(pattern.data()));
  }();
  return path;
}

void put(const fs::path& file, std::string_view text) {
  std::FILE* const out = std::fopen(file.c_str(), "wb");
  if (out == nullptr) std::abort();
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
}

template <class Read>
void attempt(Read&& read) {
  try {
    read();
  } catch (const heed::Error&) {
  } catch (const fs::filesystem_error&) {
    std::abort();
  }
}

void read_as_metrics(std::string_view text) {
  const fs::path file = directory() / "metrics.jsonl";
  put(file, text);
  const heed::server::MetricsLimits limits{
      .max_bytes = 4096, .max_rows = 8, .max_series = 3, .max_line = 512, .max_text = 2048};
  const auto read = heed::server::read_metrics(file, 2, limits);
  if (read.rows.size() > limits.max_series * static_cast<std::size_t>(limits.max_rows + 1)) {
    std::abort();
  }
  for (const heed::Json& row : read.rows) {
    if (row.at("step").get<std::int64_t>() < 2) std::abort();
  }
  heed::server::last_step(file);
  heed::server::MetricsReader reader(file);
  while (!reader.read_new().empty()) {
  }
  reader.skip_to_end();
  if (!reader.read_new().empty()) std::abort();
  attempt([] { heed::RunDirectory(directory()).truncate_metrics({.step = 3}); });
}

void read_as(const char* name, std::string_view text) {
  fs::create_directories(directory() / "last");
  fs::remove(directory() / "last/training_state.json");  // it hides the file of earlier versions
  put(directory() / name, text);
  attempt([] { heed::RunDirectory(directory()).read_record(); });
  attempt([] { heed::RunDirectory(directory()).is_finished(); });
  attempt([] { heed::server::Runs({directory()}).describe(); });
}

// Whatever its ranges are, their numbers are in the file.
void read_as_shard(std::string_view text) {
  constexpr std::int64_t numbers = 1000;
  const fs::path file = directory() / "shard.safetensors";
  put(file, text);
  attempt([&] {
    const heed::StateShard shard(file, {"", 0}, numbers);
    for (std::size_t i = 0; i < shard.ranges().size(); ++i) {
      const heed::ArenaRange& range = shard.ranges()[i];
      if (range.end > numbers || range.begin > range.end) std::abort();
      const std::span<const std::byte> last = shard.numbers(i).second_moment;
      if (last.size() != range.size() * sizeof(float)) std::abort();
    }
  });
}

}  // namespace

// The first byte says which file the others are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: read_as_metrics(text); break;
    case 1: read_as("run.json", text); break;
    case 2: read_as("last/config.json", text); break;
    case 3: read_as("last/training_state.json", text); break;
    case 4: read_as_shard(text); break;
    default: read_as("last/training_state.safetensors", text);
  }
  return 0;
}
