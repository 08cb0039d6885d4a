// Stories as a whole: reproducible, with a probability that reading them back confirms.
#include "microworld/microworld.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "heed/error.h"
#include "microworld/kinds.h"
#include "support/process.h"

namespace heed::microworld {
namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();

Story first_of(const Microworld& world, StoryKind kind) {
  for (std::int64_t i = 0;; ++i) {
    Story story = world.story(i);
    if (story.kind == kind) return story;
  }
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Microworld, StoryIsAFunctionOfSeedAndIndex) {
  const Microworld world(42);
  std::vector<std::string> forward, backward;
  for (std::int64_t i = 0; i < 50; ++i) forward.push_back(to_json_line(world.story(i)));
  for (std::int64_t i = 50; i-- > 0;) backward.push_back(to_json_line(Microworld(42).story(i)));
  EXPECT_EQ(forward, std::vector<std::string>(backward.rbegin(), backward.rend()));
  EXPECT_NE(world.story(0).text, Microworld(43).story(0).text);
  EXPECT_NE(world.story(0).text, world.story(1).text);
  EXPECT_THROW(world.story(-1), Error);
}

TEST(Microworld, ReadingAStoryBackGivesItsProbabilityAndTruth) {
  const Microworld world(7);
  const std::int64_t stories = heed::testing::is_sanitized ? 600 : 6000;
  for (std::int64_t i = 0; i < stories; ++i) {
    const Story story = world.story(i);
    std::vector<Story> found = derivations(story.text);
    ASSERT_EQ(found.size(), 1u) << story.text;
    found[0].index = i;
    ASSERT_EQ(found[0].log_probability, story.log_probability) << story.text;
    ASSERT_EQ(to_json_line(found[0]), to_json_line(story));
  }
}

TEST(Microworld, KindsComeAsOftenAsTheyShould) {
  constexpr std::array<double, story_kind_count> weights{0.15, 0.07, 0.11, 0.05,
                                                         0.10, 0.12, 0.22, 0.18};
  const Microworld world(5);
  std::array<int, story_kind_count> counts{};
  for (std::int64_t i = 0; i < 10000; ++i) {
    ++counts[static_cast<std::size_t>(world.story(i).kind)];
  }
  for (std::size_t kind = 0; kind < story_kind_count; ++kind) {
    const double p = weights[kind];
    EXPECT_NEAR(counts[kind] / 10000.0, p, 5.0 * std::sqrt(p * (1 - p) / 10000.0));
  }
}

// The mean of −log p over stories is an unbiased estimate of the grammar's entropy.
struct Entropy {
  double nats_per_story;
  double standard_error;
};

Entropy entropy_of(const Microworld& world, std::int64_t begin, std::int64_t end) {
  double sum = 0, squares = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const double nats = -world.story(i).log_probability;
    sum += nats;
    squares += nats * nats;
  }
  const auto count = static_cast<double>(end - begin);
  const double mean = sum / count;
  return {mean, std::sqrt((squares / count - mean * mean) / (count - 1))};
}

TEST(Microworld, EntropyEstimatesAgree) {
  const Entropy one = entropy_of(Microworld(1), 0, 5000);
  const Entropy other = entropy_of(Microworld(2), 5000, 10000);
  EXPECT_GT(one.standard_error, 0.0);
  EXPECT_LT(one.standard_error, 0.5);
  EXPECT_NEAR(one.nats_per_story, other.nats_per_story,
              5.0 * std::hypot(one.standard_error, other.standard_error));
  EXPECT_GT(one.nats_per_story, 60.0);
  EXPECT_LT(one.nats_per_story, 150.0);
}

TEST(Microworld, TextThatTheGrammarCannotMakeHasNoProbability) {
  const Microworld world(9);
  const Story story = first_of(world, StoryKind::creature);
  ASSERT_EQ(log_probability(story.text), story.log_probability);
  EXPECT_EQ(log_probability(""), impossible);
  EXPECT_EQ(log_probability("Call me Ishmael."), impossible);
  EXPECT_EQ(log_probability(std::string("\0\xff(|){}", 7)), impossible);
  EXPECT_EQ(log_probability(story.text + " "), impossible);
  EXPECT_EQ(log_probability(story.text + story.text), impossible);
  EXPECT_EQ(log_probability(story.text.substr(1)), impossible);
  for (std::size_t cut = 0; cut < story.text.size(); cut += 7) {
    EXPECT_EQ(log_probability(story.text.substr(0, cut)), impossible) << cut;
  }
  EXPECT_FALSE(parse("The murderer was the cook.").has_value());
}

TEST(Microworld, OneWrongByteIsAlwaysNoticed) {
  const Story story = first_of(Microworld(9), StoryKind::letter);
  for (std::size_t i = 0; i < story.text.size(); ++i) {
    std::string text = story.text;
    text[i] ^= 0x02;
    EXPECT_EQ(log_probability(text), impossible) << text;
  }
}

TEST(Microworld, WhatContradictsTheTruthHasNoProbability) {
  const Microworld world(12);
  const Story mystery = first_of(world, StoryKind::mystery);
  for (const std::string& suspect : mystery.culprit->suspects) {
    std::string text = mystery.text;
    text.replace(mystery.culprit->answer.begin, mystery.culprit->name.size(), suspect);
    EXPECT_EQ(log_probability(text) > impossible, suspect == mystery.culprit->name) << suspect;
  }
  const std::string walk =
      "Long ago, a shy fox quiet as a mouse crept through the leafy wood full of ferns. Near a "
      "broken gate it met a sleek blue hare deep as the sea and smooth as ice, which waited. "
      "\"Good "
      "day to you,\" said the hare. The fox trembled. \"I heard a noise,\" it whispered.\nBehind a "
      "rock they dug up a tiny cup no bigger than a nut beside a new bell clean as snow. The hare "
      "took "
      "the cup and hid it under a leaf, and the fox took the bell and smiled at the moon in its "
      "side. That night in the wood an owl sang to them. The fox slept timidly.";
  EXPECT_GT(log_probability(walk), impossible);
  // A fierce fox is not quiet and does not creep, a leafy wood has no ice, and a new bell needs no
  // mending.
  EXPECT_EQ(log_probability(replaced(walk, "a shy fox", "a fierce fox")), impossible);
  EXPECT_EQ(log_probability(replaced(walk, "crept through", "prowled through")), impossible);
  EXPECT_EQ(log_probability(replaced(walk, "slept timidly", "slept proudly")), impossible);
  EXPECT_EQ(log_probability(replaced(walk, "quiet as a mouse", "cruel as winter")), impossible);
  EXPECT_EQ(log_probability(replaced(walk, "leafy", "icy")), impossible);
  EXPECT_EQ(log_probability(replaced(walk, "a new bell", "a bent bell")), impossible);
  EXPECT_EQ(log_probability(replaced(walk, "The hare took", "The pony took")), impossible);
  EXPECT_NEAR(log_probability(replaced(walk, "deep as the sea and smooth as ice",
                                       "smooth as ice and deep as the sea")),
              log_probability(walk), 1e-9);
  EXPECT_NEAR(log_probability(replaced(walk, "crept through", "slipped into")),
              log_probability(walk), 1e-9);
}

// The sentences that explanations of attention use, in their usual wording, and what follows.
TEST(Microworld, AlbumsHoldTheFamousSentences) {
  constexpr std::array<const char*, 24> lines = {
      "American shrew mole with its pink nose.",
      "One mole of carbon dioxide.",
      "Take a biopsy of the mole on his arm.",
      "The Eiffel tower over the river.",
      "Eiffel tower with its iron legs.",
      "A miniature tower on the shelf.",
      "A miniature Eiffel tower on the shelf.",
      "A fluffy blue creature roamed the verdant forest.",
      "They crashed the car into a tree.",
      "The wizard spoke of spells, of dragons and of Harry Potter.",
      "The Queen spoke of Sussex, of William and of Harry in a red coat.",
      "They sat by the river bank under the reeds.",
      "They carried the money to the bank with its iron doors.",
      "Please buy an orange and an apple that was sweet and ripe.",
      "Please buy a phone and an apple with the fast new chip.",
      "Apple unveiled a new phone.",
      "The cat sat on the mat because it was tired. So the cat lay down.",
      "The animal didn't cross the street because it was too tired. So the animal lay down.",
      "The animal didn't cross the street because it was too wide. So the street stayed empty.",
      "They fed a cat, a dog and a rat.",
      "They ate an apple, an orange and a banana.",
      "They charged an apple, a phone and a computer.",
      "A shy fox met a fluffy blue bear. The fox slept timidly.",
      "The heron looked at the crane on one leg."};
  for (std::size_t first = 0; first < lines.size(); first += 8) {
    std::string text;
    for (std::size_t i = first; i < first + 8; ++i) {
      text += (text.empty() ? "" : "\n") + std::string(lines[i]);
    }
    const std::optional<Story> album = parse(text);
    ASSERT_TRUE(album.has_value()) << text;
    EXPECT_EQ(album->kind, StoryKind::album);
  }
}

}  // namespace
}  // namespace heed::microworld
