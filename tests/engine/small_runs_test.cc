#include "engine/small_runs.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "microworld/microworld.h"

namespace heed {
namespace {

using testing::TemporaryDirectory;

TEST(SmallRuns, AreFoundByName) {
  for (const SmallRun& run : small_runs()) {
    EXPECT_EQ(find_small_run(run.name), &run);
    run.settings.validate();
  }
  EXPECT_EQ(find_small_run("gpt2"), nullptr);
}

// The grammar, parsing what was written, gives every story the probability that was counted.
TEST(SmallRuns, EntropyIsThatOfTheStoriesWritten) {
  const TemporaryDirectory directory;
  SmallRun run = small_runs().front();
  run.stories = 20;
  const double entropy = write_stories(run, directory / "text.txt");
  const std::string text = read_text_file(directory / "text.txt");
  double sum = 0;
  std::size_t begin = 0;
  for (std::int64_t i = 0; i < run.stories; ++i) {
    const std::size_t end = text.find(microworld::end_of_text, begin);
    const auto story = microworld::parse(text.substr(begin, end - begin));
    ASSERT_TRUE(story.has_value());
    EXPECT_EQ(story->kind, run.kinds.front());
    const auto own = microworld::Microworld(7, run.kinds).story(i);
    EXPECT_EQ(own.text, story->text);
    sum -= own.log_probability;
    begin = end + microworld::end_of_text.size();
  }
  EXPECT_EQ(begin, text.size());
  EXPECT_NEAR(entropy, sum, 1e-9 * sum);
  EXPECT_GT(entropy, 0);
}

TEST(SmallRuns, WritingStoriesCanBeStopped) {
  const TemporaryDirectory directory;
  const std::atomic<bool> stop = true;
  testing::expect_error(
      ErrorCode::interrupted,
      [&] { write_stories(small_runs().front(), directory / "text.txt", &stop); }, "stopped");
  EXPECT_FALSE(std::filesystem::exists(directory / "text.txt"));
}

}  // namespace
}  // namespace heed
