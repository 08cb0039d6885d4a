#include "microscope/attention/alignment.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "microscope/toy_pairs.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::toy_pair;
using testing::toy_translator;

// Against a truth made of what one head attends to most: that head makes no error.
TEST(Alignment, AHeadAlignsWhatItAttendsTo) {
  const Transformer model = toy_translator();
  const RecordedPass pass(model, toy_pair());
  RecordedAttention attention(pass);
  const std::vector<TextWord> source{{"a", 0, 2}, {"b", 2, 3}, {"c", 3, 6}, {"", 6, 7}};
  const std::vector<TextWord> target{{"", 0, 1}, {"x", 1, 3}, {"y", 3, 4}, {"z", 4, 5}};
  const PairWords words{source, target};
  for (const WordRow row : {WordRow::read, WordRow::written}) {
    const auto links = aligned_words(cross_by_words(pass, attention, {1, 2}, words, row));
    scoring::TrueAlignment truth;
    for (const AlignedWord& link : links) {
      if (link.target == 0) continue;
      truth.sure.push_back(
          {static_cast<std::int32_t>(link.source), static_cast<std::int32_t>(link.target)});
    }
    for (const HeadAlignment& head : head_alignments(pass, attention, words, truth, row)) {
      const auto own =
          aligned_words(cross_by_words(pass, attention, {head.layer, head.head}, words, row));
      int wrong = 0;
      for (std::size_t t = 1; t < own.size(); ++t) wrong += own[t].source != links[t].source;
      EXPECT_NEAR(head.counts.error_rate(), wrong / 3.0, 1e-12);
      if (head.layer == 1 && head.head == 2) {
        EXPECT_EQ(wrong, 0);
      }
    }
  }
  const Tensor<float> mean = cross_by_words(pass, attention, {1, {}}, words, WordRow::read);
  double sum = 0;
  for (const float weight : mean.view()[2].span()) sum += weight;
  EXPECT_NEAR(sum, 1, 1e-5);
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        head_alignments(pass, attention, words, {.sure = {{4, 0}}, .possible = {}}, WordRow::read);
      },
      "source word 4");
}

}  // namespace
}  // namespace heed
