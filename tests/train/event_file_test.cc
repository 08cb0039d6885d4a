// Event files, read by a decoder in Python that shares no code with the writer.
#include "train/event_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "base/expect_error.h"
#include "train/run_directory.h"
#include "train/stop_after.h"
#include "train/training.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::StopAfter;

// What read_events.py prints; nothing where there is no Python.
std::optional<std::vector<Json>> decoded(const std::filesystem::path& file) {
  if (std::system("/usr/bin/python3 -c '' >/dev/null 2>&1") != 0) return std::nullopt;
  const std::string command =
      "/usr/bin/python3 '" HEED_SOURCE_DIR "/tests/train/read_events.py' '" + file.string() + "'";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text;
  char part[4096];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  EXPECT_EQ(::pclose(pipe), 0);
  std::vector<Json> rows;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    rows.push_back(Json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return rows;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// The scalars of metrics.jsonl, line by line, as floats.
std::vector<Json> expected_of(const std::filesystem::path& metrics) {
  std::vector<Json> rows;
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);) {
    const Json row = Json::parse(line);
    Json scalars = Json::object();
    const auto add = [&](const std::string& name, const Json& value) {
      if (value.is_number()) scalars[name] = static_cast<double>(value.get<float>());
    };
    for (const auto& [name, value] : row.items()) {
      if (name == "step" || name == "seconds") continue;
      if (value.is_object()) {
        for (const auto& [part, norm] : value.items()) add(name + "/" + part, norm);
      } else {
        add(name, value);
      }
    }
    if (!scalars.empty()) rows.push_back({{"step", row["step"]}, {"scalars", scalars}});
  }
  return rows;
}

void expect_holds(const std::vector<Json>& events, const std::filesystem::path& metrics) {
  const std::vector<Json> expected = expected_of(metrics);
  ASSERT_EQ(events.size(), expected.size() + 1);
  EXPECT_EQ(events.front()["session"], 1);  // begins; what is in earlier files is void
  EXPECT_EQ(events.front()["step"], 0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(events[i + 1]["step"], expected[i]["step"]);
    EXPECT_EQ(events[i + 1]["scalars"], expected[i]["scalars"]);
    EXPECT_GE(events[i + 1]["wall_time"].get<double>(), events[i]["wall_time"].get<double>());
  }
}

// The records of TensorFlow's documentation of the format: the length, and checksums of both.
TEST(EventFile, RecordsHaveTheirLengthAndChecksums) {
  const std::string record = event_record("123456789");
  ASSERT_EQ(record.size(), 8 + 4 + 9 + 4U);
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  // The check value of CRC-32C, of these nine digits, is E3069283.
  std::uint32_t check = 0;
  std::memcpy(&check, record.data() + 21, 4);
  EXPECT_EQ(check, ((0xE3069283U >> 15 | 0xE3069283U << 17) + 0xA282EAD8U));
}

class EventTraining : public testing::Training {};

TEST_F(EventTraining, WritesWhatMetricsHold) {
  TrainRequest run = request("run");
  run.tensorboard = directory_ / "events";
  StopAfter observer(8);
  run.observer = &observer;
  run.stop = &observer.flag;
  ASSERT_TRUE(train(run).interrupted);
  ASSERT_EQ(files_in(run.tensorboard).size(), 1U);
  const std::filesystem::path metrics = RunDirectory(run.out).metrics_file();
  const auto first = decoded(files_in(run.tensorboard).front());
  if (!first) GTEST_SKIP() << "there is no Python to decode with";
  expect_holds(*first, metrics);

  // A resumed run begins another file, with all that came before.
  run.start = RunStart::resume;
  run.settings = RunDirectory(run.out).read_record().settings;
  run.observer = nullptr;
  run.stop = nullptr;
  train(run);
  const auto files = files_in(run.tensorboard);
  ASSERT_EQ(files.size(), 2U);
  expect_holds(*decoded(files.back()), metrics);

  // Of a run that was trained without.
  std::ofstream(metrics, std::ios::app) << "{\"step\": 25, \"loss\": 1.5, \"sam";  // cut by a kill
  EventFile events(directory_ / "later", start_of(metrics));
  add_metrics(events, metrics);
  EXPECT_EQ(decoded(events.path())->size(), decoded(files.back())->size());
}

TEST_F(EventTraining, SaysWhereItCannotWrite) {
  write_text_file(directory_ / "taken", "");
  expect_error(
      ErrorCode::input_output, [&] { EventFile(directory_ / "taken", 0); }, "taken");
  expect_error(
      ErrorCode::not_found, [&] { start_of(directory_ / "nothing"); }, "nothing");
}

}  // namespace
}  // namespace heed
