#include "generate/text_stream.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed {
namespace {

using testing::expect_error;

TEST(TextStream, HoldsBackUnfinishedCharacters) {
  TextStream stream;
  EXPECT_EQ(stream.push("a\xC3"), "a");
  EXPECT_EQ(stream.push("\xA9"), "é");
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x80!"), "😀!");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, IsTheSameTextByteByByte) {
  const std::string text = "Grüße, 世界 — 😀 naïve";
  TextStream stream;
  std::string streamed;
  for (const char byte : text) streamed += stream.push(std::string(1, byte));
  EXPECT_EQ(streamed + stream.finish(), text);
}

// A special token that is left out of a text still ends it, alone or with the text around it.
TEST(TextStream, HiddenPartsCanBeStopStrings) {
  TextStream plain;
  EXPECT_EQ(plain.push("a"), "a");
  EXPECT_EQ(plain.push_hidden("<|x|>"), "");
  EXPECT_EQ(plain.push("b\xC3"), "b");
  EXPECT_EQ(plain.push_hidden("<|y|>"), "\uFFFD") << "no character goes on behind it";
  EXPECT_EQ(plain.push("c"), "c");
  TextStream stopping({"<|x|>user", "<|z|>"});
  EXPECT_EQ(stopping.push("a"), "a");
  EXPECT_EQ(stopping.push_hidden("<|x|>"), "");
  EXPECT_EQ(stopping.push("b"), "b") << "another text follows";
  EXPECT_EQ(stopping.push_hidden("<|x|>"), "");
  EXPECT_EQ(stopping.push("us"), "");
  EXPECT_FALSE(stopping.stopped());
  EXPECT_EQ(stopping.push("er!"), "");
  EXPECT_TRUE(stopping.stopped());
  TextStream alone({"<|z|>"});
  EXPECT_EQ(alone.push("a"), "a");
  EXPECT_EQ(alone.push_hidden("<|z|>"), "");
  EXPECT_TRUE(alone.stopped());
  EXPECT_EQ(alone.finish(), "");
  TextStream held({"<|z|>q"});
  EXPECT_EQ(held.push_hidden("<|z|>"), "");
  EXPECT_EQ(held.finish(), "") << "held back, and hidden";
}

TEST(TextStream, ReplacesWhatIsNoCharacter) {
  TextStream stream;
  EXPECT_EQ(stream.push("a\xFF"), "a\uFFFD");
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.push("b"), "\uFFFDb");                        // one for the part of a character
  EXPECT_EQ(stream.push("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(stream.push("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, EndsBeforeAStopString) {
  TextStream stream({"END"});
  EXPECT_EQ(stream.push("some text END and more"), "some text ");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.push("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, NeverShowsTheBeginningOfAStopString) {
  TextStream stream({"\n\nUser:"});
  EXPECT_EQ(stream.push("Hello\n"), "Hello");
  EXPECT_EQ(stream.push("\nUs"), "");
  EXPECT_EQ(stream.push("er"), "");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.push(": x"), "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, ShowsWhatTurnedOutToBeNoStopString) {
  TextStream stream({"aab"});
  EXPECT_EQ(stream.push("xa"), "x");
  EXPECT_EQ(stream.push("a"), "");
  EXPECT_EQ(stream.push("a"), "a");  // the last two may still begin it
  EXPECT_EQ(stream.push("c"), "aac");
  EXPECT_EQ(stream.push("aa"), "");
  EXPECT_EQ(stream.finish(), "aa");
}

TEST(TextStream, StopsAtTheFirstOfSeveral) {
  TextStream stream({"later", "now", "no"});
  EXPECT_EQ(stream.push("well, n"), "well, ");
  EXPECT_EQ(stream.push("ow or later"), "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, FindsAStopStringAcrossCharacterBoundaries) {
  TextStream stream({"é!"});
  EXPECT_EQ(stream.push("caf\xC3"), "caf");
  EXPECT_EQ(stream.push("\xA9"), "");
  EXPECT_EQ(stream.push("!"), "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, RefusesAnEmptyStopString) {
  expect_error(
      ErrorCode::invalid_argument,
      [] {
        TextStream({"a", ""});
      },
      "must not be empty");
}

}  // namespace
}  // namespace heed
