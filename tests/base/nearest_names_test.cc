#include "base/text.h"

#include <gmock/gmock.h>

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> names{"steps", "batch_size", "seed", "step"};

TEST(NearestNames, AreThoseWithTheFewestEdits) {
  EXPECT_THAT(nearest_names("setps", names, 2), ElementsAre("steps", "seed"));
  EXPECT_THAT(nearest_names("batchsize", names, 1), ElementsAre("batch_size"));
}

TEST(NearestNames, KeepTheOrderOfEquallyNearCandidates) {
  EXPECT_THAT(nearest_names("", {"ab", "cd", "e"}, 3), ElementsAre("e", "ab", "cd"));
}

TEST(NearestNames, AreAtMostAsManyAsThereAre) {
  EXPECT_THAT(nearest_names("seed", names, 9), ::testing::SizeIs(4));
  EXPECT_THAT(nearest_names("seed", {}, 3), IsEmpty());
}

TEST(NearestNames, CompareTheFirstHundredBytes) {
  const std::string common(100, 'x');
  EXPECT_THAT(nearest_names(common + std::string(1 << 20, 'y'), {common + "z", common}, 1),
              ElementsAre(common));
}

}  // namespace
}  // namespace heed
