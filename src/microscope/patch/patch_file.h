// A file of finished cells, from which an interrupted patching sweep resumes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace heed {

class PatchFile {
 public:
  // `key` identifies everything that the cells depend on. With an empty path nothing is written.
  PatchFile(std::filesystem::path path, std::string key);

  // Fills the values stored in the file and returns their number. Throws Error{conflict} if they
  // belong to another key and Error{corrupt_data} for a damaged file.
  std::int64_t read(std::vector<double>& values) const;

  // Replaces the file atomically; values that are NaN are not stored.
  void write(const std::vector<double>& values) const;

 private:
  std::filesystem::path path_;
  std::string key_;
};

}  // namespace heed
