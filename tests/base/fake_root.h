// A directory in the place of /, with the files by which Linux describes a machine.
#pragma once

#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/temporary_directory.h"

namespace heed::testing {

class FakeRoot {
 public:
  const std::filesystem::path& path() const { return directory_.path(); }

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = directory_ / name;
    std::filesystem::create_directories(file.parent_path());
    write_text_file(file, text + "\n");
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace heed::testing
