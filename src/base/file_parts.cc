#include "base/file_parts.h"

#include "base/files.h"

namespace heed {

struct FileParts::File {
  MappedFile map;
};

FileParts::FileParts(const std::filesystem::path& path)
    : file_(std::make_shared<const File>(File{MappedFile(path)})) {}

std::size_t FileParts::size() const { return file_->map.bytes().size(); }

std::span<const std::byte> FileParts::mapped() const { return file_->map.bytes(); }

FilePart FileParts::part(std::size_t begin, std::size_t size) const {
  return FilePart(mapped().subspan(begin, size));
}

}  // namespace heed
