// What commands say of words that a model has not read: on standard error, once, and in --json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"
#include "engine/embedded_files.h"
#include "tokenizer/reading.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using ::testing::Not;
using testing::Outcome;
using testing::run_heed;
using testing::TemporaryDirectory;

class ReadingNotes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!starter_files() || !translator_files()) GTEST_SKIP() << "this build carries no models";
  }
};

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

const std::string note =
    "3 of these 7 words (pizza, extra, cheese) are not among the about 1,100 that this model has "
    "read: its guesses mean little.";

TEST_F(ReadingNotes, StandOnStandardErrorOnce) {
  const std::string text = "'I love pizza with extra cheese and'";
  for (const std::string& call :
       {"predict " + text, "attend " + text, "attend --layer 4 --head 1 " + text,
        "generate -n 3 -p " + text, "tour -n 3 " + text}) {
    const Outcome outcome = run_heed(call + " -t 1");
    ASSERT_EQ(outcome.status, 0) << call << outcome.err;
    EXPECT_EQ(times_in(outcome.err, note), 1u) << call << "\n" << outcome.err;
    EXPECT_THAT(outcome.out, Not(HasSubstr("that this model has read"))) << call;
  }
  for (const std::string& call : {std::string("predict 'The hare saw the fox'"),
                                  std::string("generate -n 3 -p 'The hare'")}) {
    EXPECT_THAT(run_heed(call + " -t 1").err, Not(HasSubstr("note:"))) << call;
  }
}

TEST_F(ReadingNotes, StandInDocumentsInstead) {
  const std::string text = "'I love pizza with extra cheese and'";
  for (const std::string& call :
       {"predict --json " + text, "attend --json --top 1 " + text,
        "generate --json -n 2 -p " + text, "tour --json -n 2 " + text, "reading --json " + text}) {
    const Outcome outcome = run_heed(call + " -t 1");
    ASSERT_EQ(outcome.status, 0) << call << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("note:"))) << call;
    const Json document = parse_json(outcome.out, call);
    EXPECT_EQ(document["unread"]["note"].get<std::string>(), note) << call;
    EXPECT_EQ(document["read"]["words"].get<int>(), 1115) << call;
  }
}

TEST_F(ReadingNotes, OfTranslationsNeverMixWithThem) {
  const Outcome one = run_heed("translate 'The dog barks.' -t 1");
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_THAT(one.err, HasSubstr("1 of these 3 words (barks) is not among the about 1,000 that "
                                 "this model has read: its translation means little."));
  EXPECT_EQ(times_in(one.out, "\n"), 1u) << one.out;
  EXPECT_EQ(run_heed("translate 'The dog sleeps.' -t 1").err, "");
  const Outcome lines =
      run_heed("translate - -t 1", "printf 'The dog barks.\\nA zebra runs.\\n' |");
  EXPECT_EQ(times_in(lines.err, "note:"), 1u) << "once for all lines";
  EXPECT_THAT(lines.err, HasSubstr("(barks, zebra)"));
  EXPECT_EQ(times_in(lines.out, "\n"), 2u);
  const Json document = json_of("translate --json 'The dog barks.' -t 1");
  EXPECT_EQ(document["translations"][0]["unread"]["words"][0]["text"].get<std::string>(), "barks");
  EXPECT_EQ(document["read"]["words"].get<int>(), 1020);
  const Outcome pair = run_heed("attend -m translator 'The dog barks.' --target 'Der Hund bellt.'");
  EXPECT_THAT(pair.err, HasSubstr("(barks)"));
  EXPECT_THAT(pair.err, HasSubstr("(bellt)"));
}

TEST_F(ReadingNotes, CharactersOfOtherScriptsAreRead) {
  const Outcome map = run_heed("attend --layer 0 --head 0 'The 水 火' -t 1");
  ASSERT_EQ(map.status, 0) << map.err;
  EXPECT_THAT(map.out, HasSubstr("水"));
  EXPECT_THAT(map.out, Not(HasSubstr("\\x"))) << "whole characters, not their bytes";
  const Outcome tour = run_heed("tour -n 1 'The 水' -t 1");
  EXPECT_THAT(tour.out, HasSubstr("‹"));
  EXPECT_THAT(tour.out, Not(HasSubstr("\\xE6")));
}

TEST(ReadingCommand, WritesWhatAModelHasRead) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 5; ++i) text += "The cat sat. ";
  write_text_file(directory / "a.txt", text);
  const std::string call = "reading --data '" + (directory / "a.txt").string() +
                           "' --title 'cats' --tokens 40 --out '" + directory.path().string() + "'";
  ASSERT_EQ(run_heed(call + " --passes 2").status, 0);
  const std::optional<ReadingRecord> record = find_reading(directory.path());
  ASSERT_TRUE(record && record->words);
  EXPECT_EQ(record->title, "cats");
  EXPECT_EQ(record->tokens, 40);
  EXPECT_THAT(record->words->words(), ::testing::ElementsAre("The", "cat", "sat"));
  EXPECT_EQ(json_of(call + " --passes 1 --json")["words"].get<int>(), 0) << "five readings are few";
  EXPECT_EQ(run_heed("reading --data x").status, 2);
  EXPECT_EQ(run_heed("reading --title x").status, 2);
  EXPECT_EQ(run_heed(call + " --title ''").status, 2);
}

TEST(ReadingCommand, ADamagedFileIsAnErrorThatNamesIt) {
  const TemporaryDirectory directory;
  const std::string model = (directory / "model").string();
  ASSERT_EQ(run_heed("convert starter --dtype int8 --out '" + model + "'").status, 0);
  EXPECT_EQ(json_of("reading --json -m '" + model + "'")["read"]["words"].get<int>(), 1115)
      << "a converted model has read the same";
  write_text_file(directory / "model/reading.json", "{\"title\": 3}");
  const Outcome outcome = run_heed("predict x -m '" + model + "'");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("reading.json"));
}

}  // namespace
}  // namespace heed
