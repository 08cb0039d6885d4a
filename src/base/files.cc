#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/system_files.h"
#include "base/unfinished_files.h"

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

MappedFile::MappedFile(const std::filesystem::path& path) {
  const RegularFile file(path);
  size_ = static_cast<std::size_t>(file.size());
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapped == MAP_FAILED) {
    const int error_number = errno;
    size_ = 0;
    fail_with_errno("map", path, error_number);
  }
  data_ = static_cast<const std::byte*>(mapped);
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

}  // namespace heed
