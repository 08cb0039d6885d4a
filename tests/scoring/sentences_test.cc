#include "scoring/metric.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed::scoring {
namespace {

using Sentences = std::vector<std::string>;

TEST(Sentences, AreTheLinesOfAText) {
  EXPECT_EQ(read_sentences("a b\nc\n", "x"), (Sentences{"a b", "c"}));
  EXPECT_EQ(read_sentences("a b\nc", "x"), (Sentences{"a b", "c"}));
  EXPECT_EQ(read_sentences("\n\na\n\n", "x"), (Sentences{"", "", "a", ""}));
}

TEST(Sentences, LoseWhiteSpaceAtTheirEnd) {
  EXPECT_EQ(read_sentences(" a b \t\r\nc\u00a0\u3000\n \n", "x"), (Sentences{" a b", "c", ""}));
}

TEST(Sentences, AreSeparatedByNewlinesOnly) {
  EXPECT_EQ(read_sentences("a\u2028b\u0085c\rd", "x"), (Sentences{"a\u2028b\u0085c\rd"}));
}

TEST(Sentences, RefuseWhatIsEmptyOrNotUtf8) {
  testing::expect_error(
      ErrorCode::invalid_argument, [] { read_sentences("", "'x.txt'"); }, "'x.txt' is empty");
  testing::expect_error(
      ErrorCode::corrupt_data, [] { read_sentences("fine\nno\xff\n", "'x.txt'"); },
      "'x.txt': line 2 is not UTF-8: its byte 3 is 0xff");
  testing::expect_error(
      ErrorCode::corrupt_data, [] { read_sentences("\xc3\n", "x"); }, "line 1");
}

}  // namespace
}  // namespace heed::scoring
