#include "engine/recorded_run.h"

#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

namespace heed {

std::filesystem::path unpack_recorded_run(const std::filesystem::path& cache) {
  const std::span<const RecordedFile> files = recorded_run_files();
  if (files.empty()) return {};
  const std::filesystem::path home = cache / recorded_run_key();
  const std::filesystem::path directory = home / "recorded";
  if (std::filesystem::exists(directory)) return directory;
  // Beside it, then renamed: another process may do the same.
  const std::filesystem::path partial = home / fmt::format("partial-{}", ::getpid());
  std::error_code error;
  for (const RecordedFile& file : files) {
    std::filesystem::create_directories((partial / file.path).parent_path(), error);
    require(!error, ErrorCode::input_output, "cannot make '{}': {}", partial.string(),
            error.message());
    write_text_file(partial / file.path, std::string(file.contents));
  }
  std::filesystem::rename(partial, directory, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove_all(partial, ignored);
    require(std::filesystem::exists(directory), ErrorCode::input_output, "cannot make '{}': {}",
            directory.string(), error.message());
  }
  return directory;
}

}  // namespace heed
