// A text that was made for a run, or given as such: it lies in the directory of the run, and goes
// where none begins.
#pragma once

#include <filesystem>
#include <optional>

#include "base/files.h"
#include "train/run_directory.h"

namespace heed {

class RunText {
 public:
  // Makes the directory; the caller writes file(). Throws Error{conflict} where there is a run, or
  // such a file.
  explicit RunText(const std::filesystem::path& run);
  ~RunText();
  RunText(const RunText&) = delete;
  RunText& operator=(const RunText&) = delete;

  const std::filesystem::path& file() const { return file_; }

 private:
  RunDirectory run_;
  OutputDirectory directory_;
  std::filesystem::path file_;
};

}  // namespace heed
