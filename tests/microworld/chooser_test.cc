// The engine: choices are proper distributions, and replaying finds every derivation of a text.
#include "microworld/writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "microworld/described.h"
#include "microworld/kinds.h"
#include "microworld/scenes.h"

namespace heed::microworld {
namespace {

// Goes through all tellings, whatever they write.
class Enumerator final : public Chooser {
 public:
  std::size_t choose(const Choice& choice) override {
    if (depth_ == left_.size()) left_.push_back({0, choice.count});
    return left_[depth_++].first;
  }
  void wrote(std::string_view) override {}
  bool alive() const override { return true; }

  bool next() {
    while (!left_.empty() && ++left_.back().first == left_.back().second) left_.pop_back();
    depth_ = 0;
    return !left_.empty();
  }

 private:
  std::vector<std::pair<std::size_t, std::size_t>> left_;  // current option, options in all
  std::size_t depth_ = 0;
};

struct Distribution {
  std::map<std::string, double> texts;
  std::size_t tellings = 0;
  double total = 0.0;
};

template <class Tell>
Distribution enumerate(Tell&& tell) {
  Distribution distribution;
  Enumerator enumerator;
  do {
    Writer writer(enumerator);
    tell(writer);
    const double probability = std::exp(writer.story().log_probability);
    distribution.texts[writer.story().text] += probability;
    distribution.total += probability;
    ++distribution.tellings;
  } while (enumerator.next());
  return distribution;
}

TEST(Chooser, TemplatesHaveTheProbabilitiesOfTheirAlternatives) {
  const Distribution all = enumerate([](Writer& writer) {
    say(writer, "a(b|c(d|e)|)f{x}", {{"x", std::string_view("(1|2)")}});
  });
  EXPECT_EQ(all.tellings, 8u);
  EXPECT_NEAR(all.total, 1.0, 1e-12);
  EXPECT_NEAR(all.texts.at("abf1"), 1.0 / 6, 1e-12);
  EXPECT_NEAR(all.texts.at("acdf2"), 1.0 / 12, 1e-12);
  EXPECT_NEAR(all.texts.at("af1"), 1.0 / 6, 1e-12);
}

TEST(Chooser, PartsOfTheGrammarSumToOneAndNeverRepeatAText) {
  const Slots slots = common_slots();
  const std::vector<std::function<void(Writer&)>> parts = {
      [](Writer& w) { write_goods(w); },
      [](Writer& w) { write_creature(w); },
      [](Writer& w) { write_place(w); },
      [&](Writer& w) { say(w, "{role} {room} {thing} {colour}", slots); },
  };
  for (const auto& part : parts) {
    const Distribution all = enumerate(part);
    EXPECT_GT(all.tellings, 30u);
    EXPECT_NEAR(all.total, 1.0, 1e-9);
    EXPECT_EQ(all.texts.size(), all.tellings) << all.texts.begin()->first;
  }
}

TEST(Chooser, ReadingsOfAWordAreEquallyLikely) {
  std::map<std::string_view, double> words;
  std::map<std::string_view, std::map<std::string_view, double>> readings;
  Slots slots = common_slots();
  for (std::string_view name : {"he", "He", "him", "his"}) slots.set(name, name);
  Enumerator enumerator;
  do {
    Writer writer(enumerator);
    const Scene& scene = write_context(writer, Reading::sense, slots);
    const double probability = std::exp(writer.story().log_probability);
    words[scene.word] += probability;
    readings[scene.word][scene.reading] += probability;
  } while (enumerator.next());
  ASSERT_EQ(words.size(), 9u);
  for (const auto& [word, probability] : words) {
    EXPECT_NEAR(probability, 1.0 / 9, 1e-12) << word;
    for (const auto& [reading, share] : readings[word]) {
      EXPECT_NEAR(share, probability / static_cast<double>(readings[word].size()), 1e-12);
    }
  }
}

TEST(Chooser, ReplayFindsEveryDerivation) {
  Replayer replayer("aab");
  std::vector<double> found;
  do {
    Writer writer(replayer);
    say(writer, "(a|aa)(ab|b|aab)", {});
    if (replayer.matched()) found.push_back(writer.story().log_probability);
  } while (replayer.next());
  EXPECT_EQ(found.size(), 2u);  // a+ab and aa+b
  for (double log_probability : found) EXPECT_NEAR(log_probability, -std::log(6.0), 1e-12);
}

TEST(Chooser, WeightedSamplingFollowsTheWeights) {
  std::array<int, 3> counts{};
  const std::array<double, 3> weights = {1.0, 2.0, 5.0};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    Sampler sampler(3, i);
    ++counts[sampler.choose({.count = 3, .weights = weights})];
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double p = weights[i] / 8.0;
    EXPECT_NEAR(counts[i] / 20000.0, p, 5.0 * std::sqrt(p * (1 - p) / 20000.0)) << i;
  }
}

// Checks every choice of whole stories on the way.
class Auditor final : public Chooser {
 public:
  explicit Auditor(std::uint64_t stream) : sampler_(11, stream) {}

  std::size_t choose(const Choice& choice) override {
    double total = 0.0;
    for (std::size_t option = 0; option < choice.count; ++option) {
      EXPECT_GT(choice.probability(option), 0.0);
      total += choice.probability(option);
    }
    EXPECT_NEAR(total, 1.0, 1e-12);
    const std::size_t option = sampler_.choose(choice);
    if (!choice.beginnings.empty()) {
      promises_.emplace_back(text_.size(), std::string(choice.beginnings[option]));
    }
    return option;
  }
  void wrote(std::string_view text) override { text_ += text; }
  bool alive() const override { return true; }

  void expect_promises_kept() const {
    for (const auto& [offset, beginning] : promises_) {
      EXPECT_EQ(text_.substr(offset, beginning.size()), beginning);
    }
  }

 private:
  Sampler sampler_;
  std::string text_;
  std::vector<std::pair<std::size_t, std::string>> promises_;
};

TEST(Chooser, EveryChoiceOfAStorySumsToOneAndBeginsAsItSays) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    Auditor auditor(i);
    Writer writer(auditor);
    tell(writer);
    auditor.expect_promises_kept();
    if (::testing::Test::HasFailure()) FAIL() << writer.story().text;
  }
}

}  // namespace
}  // namespace heed::microworld
