#include "engine/run_text.h"

#include "base/error.h"

namespace heed {
namespace {

// The root of a directory that holds no run yet.
const std::filesystem::path& free_root(const RunDirectory& run) {
  require(!run.holds_a_run(), ErrorCode::conflict,
          "'{}' already holds a run: continue it with --resume, or choose another --out",
          run.root().string());
  return run.root();
}

}  // namespace

RunText::RunText(const std::filesystem::path& run)
    : run_(run), directory_(free_root(run_)), file_(run_.root() / "text.txt") {
  std::error_code error;
  require(!std::filesystem::exists(file_, error), ErrorCode::conflict,
          "'{}' is there already: train on it with --data, or choose another --out",
          file_.string());
}

RunText::~RunText() {
  std::error_code ignored;
  if (run_.holds_a_run()) {
    directory_.keep();
  } else {
    std::filesystem::remove(file_, ignored);
  }
}

}  // namespace heed
