#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace heed {
namespace {

[[noreturn]] void fail_with_errno(const char* action, const std::filesystem::path& path,
                                  int error_number) {
  const ErrorCode code = error_number == ENOENT ? ErrorCode::not_found : ErrorCode::input_output;
  fail(code, "cannot {} '{}': {}", action, path.string(), std::strerror(error_number));
}

// Makes a rename in `directory` survive a power cut. File systems that cannot do it are left alone.
void sync_directory(const std::filesystem::path& directory) {
  const int descriptor =
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// A name that no other writer of `path` has: of no other process, and of no other thread of this.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> files{0};
  return fmt::format("{}.partial-{}-{}", path.string(), ::getpid(), files++);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_with_errno("open", path, errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int error_number = errno;
    ::close(descriptor);
    fail_with_errno("examine", path, error_number);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail(ErrorCode::invalid_argument, "'{}' is not a regular file", path.string());
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) {
      const int error_number = errno;
      ::close(descriptor);
      size_ = 0;
      fail_with_errno("map", path, error_number);
    }
    data_ = static_cast<const std::byte*>(mapped);
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(temporary_beside(path_)) {
  file_ = std::fopen(temporary_.c_str(), "wbe");
  if (file_ == nullptr) fail_with_errno("create", path_, errno);
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t size) {
  check(file_ != nullptr, "a finished file is not written to");
  if (size > 0 && std::fwrite(data, 1, size, file_) != size) {
    fail_with_errno("write", path_, errno);
  }
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
  const std::filesystem::path temporary = std::exchange(temporary_, {});
  if (std::rename(temporary.c_str(), path_.c_str()) != 0) {
    const int error_number = errno;
    std::remove(temporary.c_str());
    fail_with_errno("write", path_, error_number);
  }
  sync_directory(path_.parent_path());
}

std::string read_text_file(const std::filesystem::path& path, std::size_t largest) {
  const MappedFile file(path);
  require(file.bytes().size() <= largest, ErrorCode::corrupt_data,
          "'{}' holds {} bytes, more than the {} such a file may have", path.string(),
          file.bytes().size(), largest);
  return std::string(file.text());
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

}  // namespace heed
