// A browser has no memory maps: parts are read.
#include "base/file_parts.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

// What JavaScript hands over at once: it makes a copy of its own.
constexpr std::size_t slice = std::size_t{16} << 20;

}  // namespace

struct FileParts::File {
  explicit File(const std::filesystem::path& path) : file(path), name(path.string()) {}

  RegularFile file;
  std::string name;
  std::size_t size = 0;
};

FileParts::FileParts(const std::filesystem::path& path) {
  const auto file = std::make_shared<File>(path);
  const std::int64_t size = file->file.size();
  require(static_cast<std::uint64_t>(size) <= SIZE_MAX, ErrorCode::out_of_memory,
          "'{}' holds {} bytes, more than a browser can address", file->name, size);
  file->size = static_cast<std::size_t>(size);
  file_ = file;
}

std::size_t FileParts::size() const { return file_->size; }

std::span<const std::byte> FileParts::mapped() const { return {}; }

FilePart FileParts::part(std::size_t begin, std::size_t size) const {
  check(begin <= file_->size && size <= file_->size - begin, "a part lies in its file");
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[size]);
  require(memory != nullptr, ErrorCode::out_of_memory,
          "there is not enough memory for {} bytes of '{}'", size, file_->name);
  for (std::size_t at = 0; at < size; at += slice) {
    const std::size_t wanted = std::min(slice, size - at);
    const std::size_t count =
        file_->file.read(static_cast<std::int64_t>(begin + at),
                         {reinterpret_cast<char*>(memory.get()) + at, wanted});
    require(count == wanted, ErrorCode::corrupt_data,
            "'{}' ends at {}, but held {} bytes when it was opened", file_->name,
            begin + at + count, file_->size);
  }
  return {std::move(memory), size};
}

}  // namespace heed
