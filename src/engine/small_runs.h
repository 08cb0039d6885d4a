// Runs that take a few minutes on two cores: on stories of one kind, whose entropy is known, so
// that a loss can be compared with the best possible one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/progress.h"
#include "microworld/story.h"
#include "train/run_directory.h"
#include "train/settings.h"

namespace heed {

struct SmallRun {
  std::string name;  // as in `heed train --config sentences`
  std::string title;
  std::string note;  // what can be seen in it
  std::vector<microworld::StoryKind> kinds;
  std::int64_t stories = 0;
  TrainSettings settings;
};

// The first is the one to begin with.
const std::vector<SmallRun>& small_runs();

// Null when no small run has this name.
const SmallRun* find_small_run(std::string_view name);

// Writes the stories of a run to `file`, and returns their entropy: −Σ ln p(story), in nats, p
// being the probability under the grammar that tells them. Throws Error{interrupted} when stopped.
double write_stories(const SmallRun& run, const std::filesystem::path& file,
                     StopFlag stop = nullptr);

// A text that was made for a run, or given as a string: a file in the directory of the run, removed
// where no run begins.
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
