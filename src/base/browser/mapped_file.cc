// A browser has no memory maps: the file is read, slice by slice, so that no second copy is ever
// made.
#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

constexpr std::size_t slice = std::size_t{16} << 20;

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const RegularFile file(path);
  const std::int64_t size = file.size();
  if (size == 0) return;
  require(static_cast<std::uint64_t>(size) <= PTRDIFF_MAX, ErrorCode::out_of_memory,
          "'{}' holds {} bytes, more than a browser has memory", path.string(), size);
  size_ = static_cast<std::size_t>(size);
  auto* const data = new (std::nothrow) std::byte[size_];
  require(data != nullptr, ErrorCode::out_of_memory,
          "there is not enough memory for the {} bytes of '{}'", size, path.string());
  data_ = data;
  for (std::size_t at = 0; at < size_; at += slice) {
    const std::size_t wanted = std::min(slice, size_ - at);
    const std::size_t count =
        file.read(static_cast<std::int64_t>(at), {reinterpret_cast<char*>(data) + at, wanted});
    if (count < wanted) size_ = at + count;  // truncated meanwhile
  }
}

MappedFile::~MappedFile() { delete[] data_; }

void MappedFile::release_pages(std::span<const std::byte>) const {}  // they are no copy

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace heed
