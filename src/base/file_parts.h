// A file of which parts are wanted, one after the other, and that may be larger than what is free
// in memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

namespace heed {

// Bytes of a file, as long as this and the file's FileParts live.
class FilePart {
 public:
  explicit FilePart(std::span<const std::byte> bytes) : bytes_(bytes) {}
  FilePart(std::unique_ptr<std::byte[]> memory, std::size_t size)
      : memory_(std::move(memory)), bytes_(memory_.get(), size) {}

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> memory_;  // null: of somebody else
  std::span<const std::byte> bytes_;
};

// Where files can be mapped, the file is, and a part costs nothing; a browser reads each part when
// it is asked for. Copies share the file. Throws the errors of RegularFile.
class FileParts {
 public:
  explicit FileParts(const std::filesystem::path& path);

  std::size_t size() const;                   // when it was opened
  std::span<const std::byte> mapped() const;  // all of it; empty where it is not mapped
  // Bytes that lie in the file. Throws Error{corrupt_data} if it was truncated meanwhile and is not
  // mapped.
  FilePart part(std::size_t begin, std::size_t size) const;

 private:
  struct File;
  std::shared_ptr<const File> file_;
};

}  // namespace heed
