// The cells of a patching sweep as they come, so that one that was interrupted goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace heed {

class PatchFile {
 public:
  // `key` names all that the cells depend on. An empty path keeps nothing.
  PatchFile(std::filesystem::path path, std::string key);

  // Fills the values that the file holds, and says how many. Throws Error{conflict} when they are
  // those of another key and Error{corrupt_data} for a file that is none of these.
  std::int64_t read(std::vector<double>& values) const;

  // Writes all values that are numbers, beside the file, and renames.
  void write(const std::vector<double>& values) const;

 private:
  std::filesystem::path path_;
  std::string key_;
};

}  // namespace heed
