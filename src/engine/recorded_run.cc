#include "engine/recorded_run.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace heed {

namespace {

bool is_complete(const std::filesystem::path& directory) {
  return std::ranges::all_of(recorded_run_files(), [&](const RecordedFile& file) {
    std::error_code error;
    return std::filesystem::file_size(directory / file.path, error) == file.contents.size() &&
           !error;
  });
}

void write_files(const std::filesystem::path& directory) {
  std::error_code error;
  for (const RecordedFile& file : recorded_run_files()) {
    std::filesystem::create_directories((directory / file.path).parent_path(), error);
    require(!error, ErrorCode::input_output, "cannot make '{}': {}", directory.string(),
            error.message());
    write_text_file(directory / file.path, std::string(file.contents));
  }
}

}  // namespace

std::filesystem::path unpack_recorded_run(const std::filesystem::path& cache) {
  if (recorded_run_files().empty()) return {};
  const std::filesystem::path home = cache / recorded_run_key();
  std::filesystem::path directory = home / "recorded";
  if (is_complete(directory)) return directory;
  // Beside it, then renamed: another process may do the same.
  const std::filesystem::path partial = home / fmt::format("partial-{}", ::getpid());
  std::error_code error;
  try {
    write_files(partial);
    std::filesystem::remove_all(directory, error);  // what is left of a damaged one
    std::filesystem::rename(partial, directory, error);
  } catch (...) {
    std::filesystem::remove_all(partial, error);
    throw;
  }
  if (error) {
    std::error_code ignored;
    std::filesystem::remove_all(partial, ignored);
    require(is_complete(directory), ErrorCode::input_output, "cannot make '{}': {}",
            directory.string(), error.message());
  }
  return directory;
}

}  // namespace heed
