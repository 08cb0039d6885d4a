#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace heed {

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
  identity_ = file.identity();
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release_pages(std::span<const std::byte> part) const {
  if (part.empty()) return;
  check(part.data() >= data_ && part.data() + part.size() <= data_ + size_, "bytes of the file");
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Reading a page may map pages before it, too: Linux maps 64 KiB at once, or all of the large
  // page that holds it in the cache of files.
  constexpr std::size_t mapped_at_once = std::size_t{2} << 20;
  const auto first = static_cast<std::size_t>(part.data() - data_);
  const std::size_t begin = (first - std::min(first, mapped_at_once)) / page * page;
  const std::size_t end = first + part.size();
  // Whether the system does so changes nothing else.
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      identity_(std::move(other.identity_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  identity_.swap(other.identity_);
  return *this;
}

}  // namespace heed
