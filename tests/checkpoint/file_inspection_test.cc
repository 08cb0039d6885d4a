// A file's tensors and statistics, whichever format it has.
#include "checkpoint/file_inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "base/threads.h"
#include "checkpoint/gguf_bytes.h"
#include "checkpoint/safetensors.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using testing::GgufBytes;
using ::testing::Pair;
using testing::TemporaryDirectory;

const InspectOptions with_statistics = {.statistics = InspectOptions::Statistics::all};

TEST(FileInspection, GgufBlocksCountAsTheirNumbers) {
  const TemporaryDirectory directory;
  GgufBytes bytes;
  bytes.header(2, 1)
      .entry("general.name", "small")
      .tensor("blocks", {32, 2}, 8, 0)
      .tensor("ids", {3}, 26, 96)
      .pad();
  for (int block = 0; block < 2; ++block) {
    bytes.number<std::uint16_t>(0x3C00);  // 1
    for (int i = 0; i < 32; ++i) bytes.number(static_cast<std::int8_t>(block == 0 ? i : 0));
  }
  bytes.pad().number(1).number(2).number(3);
  // Whatever it is called, it is read as what it is.
  write_text_file(directory / "small.bin", bytes.string());
  const InspectedFile file = inspect_file(directory / "small.bin", with_statistics);
  EXPECT_EQ(file.format, "GGUF 3");
  EXPECT_THAT(file.metadata, ElementsAre(Pair("general.name", "'small'")));
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(file.tensors[0].type, "Q8_0");
  EXPECT_EQ(file.tensors[0].shape, (Shape{2, 32}));
  ASSERT_TRUE(file.tensors[0].statistics);
  EXPECT_EQ(file.tensors[0].statistics->maximum, 31);
  EXPECT_EQ(file.tensors[0].statistics->minimum, 0);
  EXPECT_EQ(file.tensors[0].statistics->zeros, 33);
  EXPECT_EQ(file.tensors[0].statistics->mean, 31 * 32 / 2 / 64.0);
  EXPECT_FALSE(file.tensors[1].statistics);
  EXPECT_EQ(file.numbers(), 67);
  EXPECT_EQ(file.bytes(), 68 + 12);
}

// More numbers than one thread reads at once; the mean is far from 0 beside the deviation.
TEST(FileInspection, StatisticsAreThoseOfAllNumbers) {
  const TemporaryDirectory directory;
  constexpr std::int64_t count = 200'000;
  std::vector<float> numbers(count);
  for (std::int64_t i = 0; i < count; ++i) {
    numbers[static_cast<std::size_t>(i)] = 1000.0F + static_cast<float>(i % 5 - 2) * 0.25F;
  }
  numbers[7] = std::numeric_limits<float>::quiet_NaN();
  numbers[150'000] = -std::numeric_limits<float>::infinity();
  const std::vector<OutgoingTensor> tensors = {
      outgoing("x", View<const float>(numbers.data(), Shape{200, 1000}))};
  write_safetensors(directory / "x.safetensors", tensors, {{"format", "pt"}});

  std::int64_t reports = 0;
  InspectOptions options = with_statistics;
  options.progress = [&](const Progress& progress) {
    ++reports;
    EXPECT_EQ(progress.done, progress.total);
  };
  const InspectedFile file = inspect_file(directory / "x.safetensors", options);
  EXPECT_EQ(reports, 1);
  EXPECT_EQ(file.format, "safetensors");
  ASSERT_EQ(file.tensors.size(), 1U);
  const TensorStatistics& found = *file.tensors[0].statistics;
  EXPECT_EQ(found.not_finite, 2);
  EXPECT_EQ(found.minimum, 999.5);
  EXPECT_EQ(found.maximum, 1000.5);
  // In double: 200,000 roundings of 1,000 · 2^-53 at most.
  EXPECT_NEAR(found.mean, 1000, 1e-5);
  EXPECT_NEAR(found.deviation, std::sqrt(0.125), 1e-5);

  const int threads = thread_count();
  set_thread_count(1);
  EXPECT_EQ(inspect_file(directory / "x.safetensors", with_statistics).tensors[0].statistics->mean,
            found.mean);
  set_thread_count(threads);
}

TEST(FileInspection, StopsWhereItIsAsked) {
  const TemporaryDirectory directory;
  const std::vector<float> numbers(10);
  const std::vector<OutgoingTensor> tensors = {
      outgoing("x", View<const float>(numbers.data(), Shape{10}))};
  write_safetensors(directory / "x.safetensors", tensors);
  const std::atomic<bool> stop = true;
  InspectOptions options = with_statistics;
  options.stop = &stop;
  testing::expect_error(ErrorCode::interrupted,
                        [&] { inspect_file(directory / "x.safetensors", options); });
  EXPECT_FALSE(inspect_file(directory / "x.safetensors").tensors[0].statistics);
}

}  // namespace
}  // namespace heed
