#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TextLines, EndInALineFeedWithOrWithoutAReturn) {
  EXPECT_THAT(text_lines("one\ntwo\r\n\nfour"), ElementsAre("one", "two", "", "four"));
  EXPECT_THAT(text_lines("one\r\r\n"), ElementsAre("one\r"));
  EXPECT_THAT(text_lines(""), IsEmpty());
  EXPECT_THAT(text_lines("\n"), ElementsAre(""));
}

TEST(TextLines, DropTheMarkBeforeTheFirstOnly) {
  EXPECT_THAT(text_lines("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo"),
              ElementsAre("one", "\xEF\xBB\xBFtwo"));
  EXPECT_THAT(text_lines("\xEF\xBB\xBF"), IsEmpty());
  EXPECT_EQ(without_byte_order_mark("\xEF\xBBone"), "\xEF\xBBone");
}

TEST(Trimmed, LeavesOutSpacesAtBothEnds) {
  EXPECT_EQ(trimmed(" \t a b \r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed("\na ", " "), "\na");
}

}  // namespace
}  // namespace heed
