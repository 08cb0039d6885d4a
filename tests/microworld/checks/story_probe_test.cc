#include "microworld/checks/story_probe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "support/small_model.h"

namespace heed {
namespace {

constexpr std::size_t bytes_seen = 20;

// The end of a text, a token for each byte.
std::vector<std::int32_t> ending(std::string_view text) {
  std::vector<std::int32_t> tokens;
  for (const char c : text.substr(text.size() - std::min(text.size(), bytes_seen))) {
    tokens.push_back(static_cast<unsigned char>(c) % 40);
  }
  return tokens;
}

// All mysteries end alike, and this model sees no more than their end: there is nothing to read,
// and nothing beats a control that has nothing either.
TEST(StoryProbes, ReadNothingWhereThereIsNothing) {
  const Transformer model = testing::small_gpt(40);
  for (const StoryProperty property : {StoryProperty::culprit, StoryProperty::culprit_place}) {
    const StoryProbe found =
        probe_stories(model, ending, property, {.training = 60, .held_out = 40});
    EXPECT_EQ(found.training, 60);
    EXPECT_EQ(found.held_out, 40);
    EXPECT_GE(found.classes.size(), 3U);
    EXPECT_LE(found.words.accuracy, found.most_frequent);
    for (const StoryProbe::Depth& depth : found.depths) {
      EXPECT_LE(depth.found.accuracy, found.most_frequent);
      EXPECT_FALSE(found.beats_words(depth));
    }
    EXPECT_EQ(depths_json(found).size(), found.depths.size());
  }
}

// Whether a word stands in quotation marks is read from a model that is told so by a token.
TEST(StoryProbes, ReadWhatTheLastTokenSays) {
  const Transformer model = testing::small_gpt(40);
  const auto telling = [](std::string_view text) {
    return std::vector<std::int32_t>{1, 2, std::ranges::count(text, '"') % 2 == 1 ? 9 : 7};
  };
  const StoryProbe found =
      probe_stories(model, telling, StoryProperty::spoken, {.training = 100, .held_out = 60});
  ASSERT_EQ(found.classes.size(), 2U);
  EXPECT_EQ(found.depths.front().found.accuracy, 1);
  EXPECT_EQ(found.words.accuracy, 1);  // the bag of words has the token too
  EXPECT_FALSE(found.beats_words(found.depths.front()));
  const std::vector<std::int32_t> spoken = telling("\"I know");
  EXPECT_EQ(found.classes[found.read(model, spoken).front()], "spoken");
}

TEST(StoryProbes, RefuseNoStoriesAndStop) {
  const Transformer model = testing::small_gpt(40);
  EXPECT_THROW(probe_stories(model, ending, StoryProperty::culprit, {.training = 0}), Error);
  const std::atomic<bool> stop = true;
  EXPECT_THROW(probe_stories(model, ending, StoryProperty::culprit, {.stop = &stop}), Error);
}

}  // namespace
}  // namespace heed
