// A directory of its own for a test, removed at its end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace heed::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heed-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  // Names of everything in it, to see that nothing was left behind.
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

// A new directory of this test program, or the former one of that name, emptied. It is removed with
// the program.
inline std::filesystem::path new_directory(const std::string& name) {
  static const TemporaryDirectory all;
  std::filesystem::remove_all(all / name);
  std::filesystem::create_directories(all / name);
  return all / name;
}

}  // namespace heed::testing
