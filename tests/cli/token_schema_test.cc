// One schema for tokens in every command's --json: {"id": 17, "text": " mole"}.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"

namespace heed {
namespace {

using testing::Outcome;
using testing::run_heed;
using testing::with_model;

void expect_token(const Json& token, const std::string& path) {
  ASSERT_TRUE(token.is_object()) << path << ": " << token;
  ASSERT_TRUE(token.contains("id") && token["id"].is_number_integer()) << path;
  ASSERT_TRUE(token.contains("text") && token["text"].is_string()) << path;
}

bool names_tokens(const std::string& name) { return name == "tokens" || name.ends_with("_tokens"); }

// Returns how many tokens the document holds.
int check_tokens(const Json& value, const std::string& path) {
  int count = 0;
  if (value.is_object() && value.contains("id")) {
    expect_token(value, path);
    ++count;
  }
  if (value.is_structured()) {
    for (const auto& [name, member] : value.items()) {
      const std::string inner = path + "." + name;
      if (value.is_object() && names_tokens(name)) {
        EXPECT_TRUE(member.is_array()) << inner << ": counts are called token_count";
        for (const Json& token : member) expect_token(token, inner);
      }
      count += check_tokens(member, inner);
    }
  }
  return count;
}

TEST(TokenSchema, IsTheSameInEveryCommand) {
  const testing::TemporaryDirectory directory;
  const std::string file = (directory / "text.txt").string();
  std::string text;
  for (int i = 0; i < 40; ++i) text += "A fluffy mole met a blue hare. ";
  write_text_file(file, text);
  const std::string prompts =
      " --clean-tokens 5,17,4 --corrupted-tokens 5,18,4 --answer '#7' --wrong '#8' ";
  for (const std::string& call :
       {std::string("tour 'A mole dug' -n 4"), std::string("generate -p 'A mole' -n 4"),
        std::string("predict 'A mole' --all-positions --ablate L0H0"),
        std::string("attend 'A mole'"), std::string("attend 'A mole' --layer 0 --head 0"),
        std::string("attend 'A mole' --word mole"), std::string("trace 'A mole' --points q"),
        std::string("lens 'A mole' --token '#9'"),
        std::string("lens 'A mole' --attribute '#9' --against '#8'"),
        std::string("lens 'A mole' --residual"), "eval --per-token --text " + file,
        "heads --windows 2 --text " + file, "patch " + prompts,
        std::string("explain head --layer 0 --head 0"),
        "explain neuron --layer 0 --neuron 1 --text " + file, std::string("tokenize 'A mole'")}) {
    const Outcome outcome = run_heed(call + " --json " + with_model());
    ASSERT_EQ(outcome.status, 0) << call << "\n" << outcome.err;
    const int tokens = check_tokens(parse_json(outcome.out, call), "");
    if (!call.starts_with("heads")) {
      EXPECT_GT(tokens, 0) << call;
    }
  }
}

TEST(TokenSchema, BytesThatAreNoTextAreListed) {
  const Outcome outcome = run_heed("tokenize --json \"$(printf '\\360\\237')\" " + with_model());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json token = parse_json(outcome.out, "tokens")["tokens"][0];
  EXPECT_EQ(token["text"], "‹F0›");
  EXPECT_EQ(token["bytes"], Json({240}));
}

TEST(HeadsCommand, ScansRandomWindowsOfAFile) {
  const testing::TemporaryDirectory directory;
  const std::string file = (directory / "text.txt").string();
  std::string text;
  for (int i = 0; i < 400; ++i) text += "A fluffy mole met a blue hare. ";
  write_text_file(file, text);
  const std::string call = "heads --text " + file + " -c 16 --windows 3 " + with_model();
  const auto begins = [&](const std::string& seed) {
    const Outcome outcome = run_heed(call + "--json --seed " + seed);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const Json document = parse_json(outcome.out, "heads");
    EXPECT_EQ(document["token_count"], 48);
    EXPECT_EQ(document["window"], 16);
    return document["window_begins"];
  };
  EXPECT_EQ(begins("1").size(), 3U);
  EXPECT_EQ(begins("1"), begins("1"));
  EXPECT_NE(begins("1"), begins("2"));
  EXPECT_THAT(run_heed(call).out, ::testing::HasSubstr("3 windows of 16 tokens"));
  EXPECT_EQ(run_heed("heads 'a mole' --windows 3 " + with_model()).status, 2);
}

}  // namespace
}  // namespace heed
