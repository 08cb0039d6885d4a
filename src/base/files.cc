#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"

namespace heed {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

// Without O_NONBLOCK, opening a pipe would block until it has a writer.
RegularFile::RegularFile(const std::filesystem::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  if (descriptor_ < 0) {
    // A socket cannot be opened at all.
    require(errno != ENXIO, ErrorCode::invalid_argument, "'{}' is not a regular file",
            path.string());
    fail_with_errno("open", path, errno);
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int error_number = errno;
    ::close(descriptor_);
    fail_with_errno("examine", path, error_number);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail(ErrorCode::invalid_argument, "'{}' is not a regular file but {}", path.string(),
         kind_of(status.st_mode));
  }
}

RegularFile::~RegularFile() { ::close(descriptor_); }

std::int64_t RegularFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_with_errno("examine", path_, errno);
  return status.st_size;
}

std::string RegularFile::identity() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_with_errno("examine", path_, errno);
  return fmt::format("{:x}.{:x}.{:x}.{:x}.{:x}", status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::size_t RegularFile::read(std::int64_t begin, std::span<char> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(descriptor_, out.data() + done, out.size() - done,
                                  begin + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno("read", path_, errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::string read_text_file(const std::filesystem::path& path, std::size_t largest) {
  const RegularFile file(path);
  const auto size = static_cast<std::size_t>(file.size());
  require(size <= largest, ErrorCode::corrupt_data,
          "'{}' holds {} bytes, more than the {} such a file may have", path.string(), size,
          largest);
  std::string text(size, '\0');
  text.resize(file.read(0, text));
  return text;
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void remove_file(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  require(!error, ErrorCode::input_output, "cannot remove '{}': {}", path.string(),
          error.message());
  sync_directory(path.parent_path());
}

void make_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  require(!error, ErrorCode::input_output, "cannot create directory '{}': {}", path.string(),
          error.message());
}

OutputDirectory::OutputDirectory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path missing = std::filesystem::absolute(path, error).lexically_normal();
  if (!missing.has_filename()) missing = missing.parent_path();
  while (!missing.empty() && !std::filesystem::exists(missing, error)) {
    created_.push_back(missing);
    missing = missing.parent_path();
  }
  for (const std::filesystem::path& directory : created_) note_unfinished(directory.c_str());
  try {
    make_directory(path);
  } catch (...) {
    keep();
    throw;
  }
}

OutputDirectory::~OutputDirectory() {
  std::error_code error;
  for (const std::filesystem::path& directory : created_) {
    if (!std::filesystem::remove(directory, error)) break;  // not empty
  }
  keep();
}

void OutputDirectory::keep() {
  for (const std::filesystem::path& directory : created_) forget_unfinished(directory.c_str());
  created_.clear();
}

// AtomicFile, and removal of temporary files that killed processes left behind.

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
