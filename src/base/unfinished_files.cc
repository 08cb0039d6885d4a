#include "base/unfinished_files.h"

#include <unistd.h>

#include <array>
#include <atomic>

namespace heed {
namespace {

using Path = std::atomic<const char*>;
static_assert(Path::is_always_lock_free, "signal handlers may touch nothing else");

std::array<Path, 64> noted_paths{};  // null: free
std::atomic<bool> is_removing{false};

}  // namespace

void note_unfinished(const char* path) noexcept {
  for (Path& noted : noted_paths) {
    const char* expected = nullptr;
    if (noted.compare_exchange_strong(expected, path)) break;
  }
  while (is_removing) ::pause();
}

void created_unfinished(const char* path) noexcept {
  if (is_removing) ::unlink(path);
  while (is_removing) ::pause();
}

void forget_unfinished(const char* path) noexcept {
  for (Path& noted : noted_paths) {
    const char* expected = path;
    if (noted.compare_exchange_strong(expected, nullptr)) break;
  }
  while (is_removing) ::pause();  // the path may still be read, and the process is about to end
}

void remove_unfinished() noexcept {
  is_removing = true;
  for (const Path& noted : noted_paths) {
    if (const char* path = noted.load()) ::unlink(path);
  }
  bool has_removed = true;
  while (has_removed) {  // a directory is empty once those in it are removed
    has_removed = false;
    for (const Path& noted : noted_paths) {
      if (const char* path = noted.load()) has_removed |= ::rmdir(path) == 0;
    }
  }
}

}  // namespace heed
