#include "scoring/alignment_error.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed::scoring {
namespace {

using Links = std::vector<AlignmentLink>;

// Four links found: two are sure, one more is possible, one is wrong. Three were sure.
TEST(AlignmentError, FollowsItsDefinition) {
  const TrueAlignment truth{.sure = {{0, 0}, {1, 2}, {3, 3}}, .possible = {{2, 1}, {2, 2}}};
  const AlignmentCounts counts = count_links(Links{{0, 0}, {1, 2}, {2, 1}, {5, 5}}, truth);
  EXPECT_EQ(counts.found, 4);
  EXPECT_EQ(counts.sure, 3);
  EXPECT_EQ(counts.found_sure, 2);
  EXPECT_EQ(counts.found_possible, 3);
  EXPECT_EQ(counts.precision(), 3.0 / 4);
  EXPECT_EQ(counts.recall(), 2.0 / 3);
  EXPECT_EQ(counts.error_rate(), 1 - 5.0 / 7);
}

TEST(AlignmentError, IsZeroIfAllThatIsSureAndNothingImpossibleIsFound) {
  const TrueAlignment truth{.sure = {{0, 0}}, .possible = {{1, 1}, {1, 2}}};
  EXPECT_EQ(count_links(Links{{0, 0}}, truth).error_rate(), 0);
  EXPECT_EQ(count_links(Links{{0, 0}, {1, 2}}, truth).error_rate(), 0);
  EXPECT_EQ(count_links(Links{{2, 0}, {0, 2}}, truth).error_rate(), 1);
}

// Source and target are not interchangeable, and a sure link need not be listed as possible.
TEST(AlignmentError, TellsTheTwoSidesApart) {
  const TrueAlignment truth{.sure = {{0, 1}}};
  EXPECT_EQ(count_links(Links{{0, 1}}, truth).error_rate(), 0);
  EXPECT_EQ(count_links(Links{{1, 0}}, truth).error_rate(), 1);
}

TEST(AlignmentError, CountsALinkOnce) {
  const TrueAlignment truth{.sure = {{0, 0}, {0, 0}}, .possible = {{0, 0}}};
  const AlignmentCounts counts = count_links(Links{{0, 0}, {0, 0}}, truth);
  EXPECT_EQ(counts.found, 1);
  EXPECT_EQ(counts.sure, 1);
  EXPECT_EQ(counts.found_possible, 1);
}

TEST(AlignmentError, OfNothingIsZero) {
  EXPECT_EQ(count_links(Links{}, TrueAlignment{}).error_rate(), 0);
  EXPECT_EQ(count_links(Links{}, {.sure = {{0, 0}}}).error_rate(), 1);
}

// Sums before dividing: 1 - (1 + 1 + 0 + 0) / (1 + 1 + 1 + 2).
TEST(AlignmentError, AddsSentences) {
  const std::vector<Links> found{{{0, 0}}, {{0, 0}}};
  const std::vector<TrueAlignment> truth{{.sure = {{0, 0}}}, {.sure = {{1, 0}, {1, 1}}}};
  EXPECT_EQ(count_links(found, truth).error_rate(), 1 - 2.0 / 5);
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { count_links(found, std::span(truth).first(1)); },
      "2 sentences, and true ones of 1");
}

}  // namespace
}  // namespace heed::scoring
