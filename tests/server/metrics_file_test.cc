// metrics.jsonl within limits, whatever it holds.
#include "server/explorer/metrics_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"

namespace heed::server {
namespace {

using heed::testing::TemporaryDirectory;
using ::testing::ElementsAre;

class MetricsFile : public ::testing::Test {
 protected:
  void write(const std::string& text) const { write_text_file(file_, text); }
  void append(const std::string& text) const { std::ofstream(file_, std::ios::app) << text; }

  std::vector<std::int64_t> steps(std::int64_t from = 0, const MetricsLimits& limits = {}) const {
    std::vector<std::int64_t> steps;
    for (const Json& row : read_metrics(file_, from, limits).rows) steps.push_back(row["step"]);
    return steps;
  }

  // A loss at every step, an evaluation at every hundredth.
  static std::string long_run(int count) {
    std::string text;
    for (int step = 1; step <= count; ++step) {
      text += fmt::format("{{\"step\":{},\"loss\":{},\"learning_rate\":0.1}}\n", step, 1.0 / step);
      if (step % 100 == 0) text += fmt::format("{{\"step\":{},\"val_loss\":2.5}}\n", step);
    }
    return text;
  }

  TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_ / "metrics.jsonl";
};

TEST_F(MetricsFile, IsReadFromAStepOn) {
  EXPECT_THAT(steps(), ElementsAre());  // none is there
  write("{\"step\":1,\"loss\":1}\n{\"loss\":2,\"step\":2}\n{\"step\":3}\n{\"step\":4");
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
  EXPECT_THAT(steps(2), ElementsAre(2, 3));
  EXPECT_FALSE(read_metrics(file_, 0).is_thinned);
  EXPECT_EQ(last_step(file_), 3);
}

TEST_F(MetricsFile, PassesOverWhatMakesNoSense) {
  const std::string deep = std::string(70'000, '[') + std::string(70'000, ']');
  write("nothing\n\n{\"step\":\"six\"}\n[1]\n{\"step\":1.5}\n{\"step\":7}\n{\"step\":8,\"a\":" +
        deep + "}\n" + deep + "\n{\"step\":9,\"step\":10}\n{\"step\":99999999999999999999999}\n" +
        std::string("\0\n", 2));
  EXPECT_THAT(steps(), ElementsAre(7));
  EXPECT_EQ(last_step(file_), 7);
  MetricsReader reader(file_);
  EXPECT_EQ(reader.read_new().size(), 1U);
  EXPECT_TRUE(reader.read_new().empty());
}

TEST_F(MetricsFile, IsThinnedEvenlyWithItsFirstAndLastOfEachSeries) {
  write(long_run(5000));
  const MetricsRows read = read_metrics(file_, 0, {.max_rows = 100});
  EXPECT_TRUE(read.is_thinned);
  std::vector<std::int64_t> losses;
  std::vector<std::int64_t> evaluations;
  for (const Json& row : read.rows) {
    (row.contains("loss") ? losses : evaluations).push_back(row["step"]);
  }
  EXPECT_EQ(evaluations.size(), 50U);  // a rare series loses nothing
  EXPECT_LE(losses.size(), 101U);
  EXPECT_GE(losses.size(), 50U);
  EXPECT_EQ(losses.front(), 1);
  EXPECT_EQ(losses.back(), 5000);
  for (std::size_t i = 2; i + 1 < losses.size(); ++i) {
    EXPECT_EQ(losses[i] - losses[i - 1], losses[1] - losses[0]);
  }
  // What is asked for from a late step on is whole.
  EXPECT_EQ(steps(4950, {.max_rows = 100}).size(), 52U);
}

TEST_F(MetricsFile, IsReadFromItsEndWhenItIsTooLarge) {
  write(long_run(5000));
  const MetricsLimits limits{.max_bytes = 10'000, .max_line = 200};
  const std::vector<std::int64_t> read = steps(0, limits);
  EXPECT_GT(read.size(), 100U);
  EXPECT_LT(read.size(), 400U);
  EXPECT_EQ(read.back(), 5000);
  EXPECT_TRUE(read_metrics(file_, 0, limits).is_thinned);
}

TEST_F(MetricsFile, HoldsNoMoreTextThanAllowed) {
  std::string text;
  for (int step = 0; step < 64; ++step) {
    text += fmt::format("{{\"step\":{},\"loss\":1}}\n", step);
    text += fmt::format("{{\"step\":{},\"sample\":\"{}\"}}\n", step, std::string(1000, 'x'));
  }
  write(text);
  const MetricsRows read = read_metrics(file_, 0, {.max_text = 10'000});
  std::size_t bytes = 0;
  std::size_t losses = 0;
  for (const Json& row : read.rows) {
    bytes += row.dump().size();
    losses += row.contains("loss");
  }
  EXPECT_LE(bytes, 12'000U);
  EXPECT_EQ(losses, 64U);  // the samples are thinned, not the curve
}

TEST_F(MetricsFile, MayHaveAnyNumberOfSeries) {
  std::string text;
  for (int step = 0; step < 500; ++step)
    text += fmt::format("{{\"step\":{},\"k{}\":1}}\n", step, step);
  write(text);
  const std::vector<std::int64_t> read = steps(0, {.max_rows = 10, .max_series = 4});
  EXPECT_LE(read.size(), 4U * 11U);
  EXPECT_EQ(read.back(), 499);
}

TEST_F(MetricsFile, PassesOverLinesThatAreTooLong) {
  const std::string large(3 << 20, 'x');
  write("{\"step\":1}\n{\"step\":2,\"sample\":\"" + large + "\"}\n{\"step\":3}\n");
  EXPECT_THAT(steps(), ElementsAre(1, 3));
  EXPECT_EQ(last_step(file_), 3);
  MetricsReader reader(file_);
  std::vector<std::int64_t> read;
  for (auto rows = reader.read_new(); !rows.empty(); rows = reader.read_new()) {
    for (const Json& row : rows) read.push_back(row["step"]);
  }
  EXPECT_THAT(read, ElementsAre(1, 3));
}

TEST_F(MetricsFile, IsFollowedLineByLine) {
  MetricsReader reader(file_);
  EXPECT_TRUE(reader.read_new().empty());
  write("{\"step\":1}\n{\"st");
  EXPECT_EQ(reader.read_new().size(), 1U);
  EXPECT_TRUE(reader.read_new().empty());
  append("ep\":2}\nnot json\n{\"step\":3}\n");
  const std::vector<Json> rows = reader.read_new();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["step"], 2);
  write("{\"step\":1}\n");  // a resumed run cut it
  EXPECT_EQ(reader.read_new().size(), 1U);
  append("{\"step\":2}\n{\"step\"");
  reader.skip_to_end();
  append(":3}\n");
  EXPECT_EQ(reader.read_new().front()["step"], 3);
}

}  // namespace
}  // namespace heed::server
