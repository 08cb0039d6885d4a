#include "engine/embedded_files.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "engine/loaded_model.h"
#include "train/run_directory.h"

namespace heed {
namespace {

using testing::TemporaryDirectory;

TEST(RecordedRun, IsARunWhoseCheckpointsCanBeLoaded) {
  const TemporaryDirectory cache;
  const std::filesystem::path directory = unpack_recorded_run(cache.path());
  if (directory.empty()) GTEST_SKIP() << "built without models/recorded-run";
  ASSERT_TRUE(RunDirectory(directory).holds_a_run());
  const RunRecord record = RunDirectory(directory).read_record();
  EXPECT_TRUE(record.entropy_per_token.has_value());
  for (const std::string& data : record.data)
    EXPECT_FALSE(std::filesystem::path(data).is_absolute());
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "checkpoints")) {
    EXPECT_NO_THROW(load_model(entry.path().string()));
    ++checkpoints;
  }
  EXPECT_GE(checkpoints, 5);
}

TEST(RecordedRun, IsMadeAgainWhereFilesAreGone) {
  const TemporaryDirectory cache;
  const std::filesystem::path directory = unpack_recorded_run(cache.path());
  if (directory.empty()) GTEST_SKIP() << "built without models/recorded-run";
  std::filesystem::remove(directory / "run.json");
  EXPECT_EQ(unpack_recorded_run(cache.path()), directory);
  EXPECT_TRUE(RunDirectory(directory).holds_a_run());
}

TEST(RecordedRun, IsWrittenOnceAndLeavesNothingElse) {
  const TemporaryDirectory cache;
  const std::filesystem::path directory = unpack_recorded_run(cache.path());
  if (directory.empty()) GTEST_SKIP() << "built without models/recorded-run";
  const auto written = std::filesystem::last_write_time(directory / "run.json");
  EXPECT_EQ(unpack_recorded_run(cache.path()), directory);
  EXPECT_EQ(std::filesystem::last_write_time(directory / "run.json"), written);
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.parent_path())) {
    EXPECT_EQ(entry.path(), directory);
    ++entries;
  }
  EXPECT_EQ(entries, 1);
}

}  // namespace
}  // namespace heed
