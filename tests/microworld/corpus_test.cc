#include "microworld/microworld.h"

#include <gtest/gtest.h>

#include <atomic>
#include <sstream>
#include <string>

#include "base/json.h"
#include "base/threads.h"
#include "heed/error.h"

namespace heed::microworld {
namespace {

TEST(Corpus, HoldsTheStoriesInOrderEachWithItsEnd) {
  const Microworld world(3);
  std::string expected;
  for (std::int64_t i = 10; i < 5010; ++i) {
    expected += world.story(i).text;
    expected += "<|endoftext|>";
  }
  const int threads = thread_count();
  for (int count : {1, 3}) {
    set_thread_count(count);
    EXPECT_TRUE(corpus(world, 10, 5010) == expected) << count << " threads";
  }
  set_thread_count(threads);
  EXPECT_EQ(corpus(world, 4, 4), "");
}

TEST(Corpus, TruthLinesSayWhatTheStorySays) {
  const Microworld world(3);
  std::istringstream lines(corpus(world, 0, 200, CorpusFormat::truth));
  std::string line;
  std::int64_t index = 0;
  while (std::getline(lines, line)) {
    const Json truth = parse_json(line, "truth");
    const Story story = world.story(index);
    const std::string text = truth.at("text");
    EXPECT_EQ(truth.at("index"), index++);
    EXPECT_EQ(text, story.text);
    EXPECT_EQ(truth.at("kind"), story_kind_name(story.kind));
    EXPECT_EQ(truth.at("log_probability").get<double>(), story.log_probability);
    EXPECT_EQ(truth.at("senses").size(), story.senses.size());
    for (const Json& mark : truth.at("names")) {
      const std::size_t begin = mark.at("begin"), end = mark.at("end");
      EXPECT_EQ(mark.at("name"), text.substr(begin, end - begin));
      EXPECT_FALSE(mark.at("referent").get<std::string>().empty());
    }
    ASSERT_EQ(truth.at("adjectives").size(), story.adjectives.size());
    for (std::size_t i = 0; i < story.adjectives.size(); ++i) {
      const Json& mark = truth.at("adjectives")[i];
      EXPECT_EQ(mark.at("noun").at("text"), story.adjectives[i].noun.in(story.text));
      EXPECT_EQ(mark.at("adjectives").size(), story.adjectives[i].adjectives.size());
    }
    if (story.culprit) {
      EXPECT_EQ(truth.at("culprit").at("name"), story.culprit->name);
      EXPECT_EQ(truth.at("culprit").at("answer").at("begin"), story.culprit->answer.begin);
      EXPECT_EQ(truth.at("culprit").at("clue_name").at("text"), story.culprit->name);
    } else {
      EXPECT_TRUE(truth.at("culprit").is_null());
    }
  }
  EXPECT_EQ(index, 200);
}

TEST(Corpus, RefusesRangesThatMakeNoSense) {
  EXPECT_THROW(corpus(Microworld(1), 5, 4), Error);
  EXPECT_THROW(corpus(Microworld(1), -1, 4), Error);
}

TEST(Corpus, StopsOnRequestAfterWholeStories) {
  std::atomic<bool> stop = false;
  std::string text;
  const auto sink = [&](std::string_view piece) {
    text += piece;
    stop = true;
  };
  try {
    write_corpus(Microworld(1), {.begin = 0, .end = 1000000, .stop = &stop}, sink);
    FAIL() << "not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::interrupted);
  }
  EXPECT_TRUE(text.ends_with(end_of_text));
}

TEST(Corpus, ReportsItsProgress) {
  std::int64_t done = 0;
  write_corpus(Microworld(1),
               {.begin = 100,
                .end = 9000,
                .progress =
                    [&](const Progress& progress) {
                      EXPECT_GT(progress.done, done);
                      EXPECT_EQ(progress.total, 8900);
                      done = progress.done;
                    }},
               [](std::string_view) {});
  EXPECT_EQ(done, 8900);
}

}  // namespace
}  // namespace heed::microworld
