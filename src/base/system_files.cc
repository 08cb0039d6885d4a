#include "base/system_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace heed {

void fail_with_errno(const char* action, const std::filesystem::path& path, int error_number) {
  const ErrorCode code = error_number == ENOENT ? ErrorCode::not_found : ErrorCode::input_output;
  fail(code, "cannot {} '{}': {}", action, path.string(), std::strerror(error_number));
}

void sync_directory(const std::filesystem::path& directory) {
  const int descriptor =
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace heed
