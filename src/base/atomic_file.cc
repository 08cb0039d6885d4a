// AtomicFile, and removal of temporary files that killed processes left behind.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/system_files.h"
#include "base/unfinished_files.h"

namespace heed {
namespace {

constexpr std::string_view partial_mark = ".partial-";  // NAME.partial-PROCESS-NUMBER

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// Returns the name of the target of a temporary file: the part before the mark; empty for other
// files.
std::string_view target_of(std::string_view name) {
  const std::size_t mark = name.rfind(partial_mark);
  if (mark == std::string_view::npos) return {};
  const std::string_view numbers = name.substr(mark + partial_mark.size());
  const std::size_t dash = numbers.find('-');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (dash == std::string_view::npos || !is_number(numbers.substr(0, dash)) ||
      !is_number(numbers.substr(dash + 1))) {
    return {};
  }
  return name.substr(0, mark);
}

// A writer locks its temporary file until it ends.
void remove_if_abandoned(const std::filesystem::path& path) {
  const int descriptor =
      ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return;
  struct stat opened {};
  struct stat named {};
  const bool is_same = ::fstat(descriptor, &opened) == 0 && S_ISREG(opened.st_mode) &&
                       ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                       ::lstat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
                       named.st_dev == opened.st_dev;
  if (is_same) ::unlink(path.c_str());
  ::close(descriptor);
}

// Removes abandoned files of one target, or of all targets if none is named.
void remove_abandoned(const std::filesystem::path& directory, std::string_view target) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::string_view written = target_of(name);
    if (!written.empty() && (target.empty() || written == target)) {
      remove_if_abandoned(entry->path());
    }
  }
}

// Creates and locks a temporary file for `path`; returns its descriptor. On a file system without
// locks it stays unlocked, and no other process can lock it either.
int create_temporary(const std::filesystem::path& path, std::filesystem::path& temporary) {
  static std::atomic<unsigned> number{0};
  for (;;) {
    temporary = fmt::format("{}{}{}-{}", path.string(), partial_mark, ::getpid(), number++);
    note_unfinished(temporary.c_str());
    const int descriptor = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      const int error_number = errno;
      forget_unfinished(temporary.c_str());
      if (error_number == EEXIST) continue;  // left by an earlier process with this id
      fail_with_errno("create", path, error_number);
    }
    created_unfinished(temporary.c_str());
    const bool taken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status {};
    if (!taken && ::fstat(descriptor, &status) == 0 && status.st_nlink > 0) return descriptor;
    ::close(descriptor);  // another process removed it as abandoned before it was locked
    forget_unfinished(temporary.c_str());
  }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  remove_abandoned(directory_of(path_), path_.filename().string());
  lock_ = create_temporary(path_, temporary_);
  const int written = ::fcntl(lock_, F_DUPFD_CLOEXEC, 0);
  file_ = written < 0 ? nullptr : ::fdopen(written, "wb");
  if (file_ == nullptr) {
    const int error_number = errno;
    if (written >= 0) ::close(written);
    release();
    fail_with_errno("create", path_, error_number);
  }
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::fclose(file_);
  release();
}

void AtomicFile::release() {
  if (!temporary_.empty()) {
    std::remove(temporary_.c_str());
    forget_unfinished(temporary_.c_str());
    temporary_.clear();
  }
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

void AtomicFile::write(const void* data, std::size_t size) {
  check(file_ != nullptr, "a finished file is not written to");
  if (size > 0 && std::fwrite(data, 1, size, file_) != size) fail_with_errno("write", path_, errno);
}

void AtomicFile::finish() {
  if (file_ == nullptr) return;
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) {
    fail_with_errno("write", path_, errno);
  }
  if (std::fclose(std::exchange(file_, nullptr)) != 0) fail_with_errno("write", path_, errno);
}

void AtomicFile::commit() {
  finish();
  check(!temporary_.empty(), "a file is committed once");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error_number = errno;
    release();
    fail_with_errno("write", path_, error_number);
  }
  forget_unfinished(temporary_.c_str());
  temporary_.clear();
  release();
  sync_directory(path_.parent_path());
}

void remove_abandoned_files(const std::filesystem::path& directory) {
  remove_abandoned(directory, {});
}

}  // namespace heed
