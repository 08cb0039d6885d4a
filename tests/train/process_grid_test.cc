#include "train/process_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "comm/local_group.h"

namespace heed {
namespace {

using testing::as_members;
using ::testing::ElementsAre;

TrainSettings settings_of(std::int64_t batch_size, std::int64_t length, std::int64_t members) {
  TrainSettings settings;
  settings.batch_size = batch_size;
  settings.sequence_length = length;
  settings.sequence_parallel = members;
  return settings;
}

TEST(ProcessGrid, RingsShareABatchAndMembersASequence) {
  as_members(6, [](Group& group) {
    const ProcessGrid grid(group, settings_of(5, 24, 2));
    EXPECT_EQ(grid.rings(), 3);
    EXPECT_EQ(grid.ring(), group.rank() / 2);
    EXPECT_EQ(grid.place().member, group.rank() % 2);
    EXPECT_EQ(grid.place().chunk_length(), 6);
    const std::int64_t begins[] = {0, 1, 3, 5};
    EXPECT_EQ(grid.share().begin, begins[grid.ring()]);
    EXPECT_EQ(grid.share().end, begins[grid.ring() + 1]);
  });
}

TEST(ProcessGrid, ARingSendsToItsOwnMembers) {
  as_members(6, [](Group& group) {
    const ProcessGrid grid(group, settings_of(2, 24, 3));
    const std::unique_ptr<KeyValueRing> ring = make_ring(group, grid);
    ASSERT_NE(ring, nullptr);
    const int first = grid.ring() * 3;
    const std::vector<float> sent{static_cast<float>(group.rank())}, more{sent.front() + 10};
    std::vector<float> received(1), second(1);
    ring->begin(sent, received);
    ring->begin(more, second);
    ring->advance();
    ring->finish();
    EXPECT_THAT(received, ElementsAre(first + (grid.place().member + 2) % 3));
    ring->finish();
    EXPECT_THAT(second, ElementsAre(received.front() + 10));
    EXPECT_EQ(ring->sum(group.rank()), 3.0 * (first + 1));
  });
}

TEST(ProcessGrid, WholeSequencesNeedNoRing) {
  as_members(2, [](Group& group) {
    EXPECT_EQ(make_ring(group, ProcessGrid(group, settings_of(2, 7, 1))), nullptr);
  });
}

TEST(ProcessGrid, SaysWhatCannotBeShared) {
  as_members(4, [](Group& group) {
    const auto refused = [&](const TrainSettings& settings, const char* part) {
      testing::expect_error(
          ErrorCode::invalid_argument, [&] { const ProcessGrid grid(group, settings); }, part);
    };
    refused(settings_of(4, 24, 3),
            "sequence_parallel is 3, but 4 processes train: start a multiple of 3");
    refused(settings_of(4, 28, 4), "a sequence of 28 tokens: each takes two of 8 equal chunks");
    refused(settings_of(4, 6, 4), "a multiple of 8");
    refused(settings_of(3, 24, 1), "4 processes cannot share a batch of 3");
    refused(settings_of(1, 24, 2), "2 rings of processes cannot share a batch of 1");
  });
  as_members(1, [](Group& group) {
    testing::expect_error(
        ErrorCode::invalid_argument, [&] { const ProcessGrid grid(group, settings_of(4, 24, 2)); },
        "sequence_parallel is 2, but 1 process trains: start a multiple of 2");
  });
}

}  // namespace
}  // namespace heed
