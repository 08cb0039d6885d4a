#include "engine/head_to_show.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/views/token_json.h"
#include "microscope/attention/text_words.h"

namespace heed {
namespace {

HeadToShow shown_for(const LoadedModel& model, const std::vector<std::int32_t>& tokens,
                     const TextWord& word) {
  return head_to_show(model, tokens,
                      {.word = {word.begin, word.end}, .keys = single_tokens(std::ssize(tokens))});
}

// What the page opens on, since its examples are these.
TEST(HeadToShow, IsThatOfTheExampleAndSaysItsCaption) {
  const auto files = starter_files();
  if (!files) GTEST_SKIP() << "built without models/starter";
  const LoadedModel model = load_model("starter");
  std::size_t named = 0;
  for (const Json& example : parse_json(files->examples, "examples")) {
    if (!example.contains("layer")) continue;
    const std::vector<std::int32_t> tokens = model.encode(example["text"].get<std::string>());
    const std::vector<TextWord> words = text_words(model, tokens);
    const HeadToShow shown =
        shown_for(model, tokens, find_word(words, example["word"].get<std::string>()));
    EXPECT_EQ(shown.head, (HeadName{example["layer"], example["head"]}))
        << example["id"].get<std::string>();
    EXPECT_EQ(shown.example, example["title"].get<std::string>());
    EXPECT_EQ(shown.caption, example["note"].get<std::string>());
    EXPECT_NE(shown.caption.find(shown.head.text()), std::string::npos) << shown.caption;
    EXPECT_FALSE(shown.edge);
    ++named;
  }
  EXPECT_GE(named, 10U);
}

TEST(HeadToShow, OfAnotherWordOrTextIsThatOfTheEdge) {
  if (!starter_files()) GTEST_SKIP() << "built without models/starter";
  const LoadedModel model = load_model("starter");
  for (const char* const text :
       {"Late one evening, a fluffy blue hare", "Late one evening, a fluffy red hare"}) {
    const std::vector<std::int32_t> tokens = model.encode(text);
    const std::vector<TextWord> words = text_words(model, tokens);
    const TextWord& word =
        std::string_view(text).find("red") == std::string_view::npos ? words[5] : words.back();
    const auto edge =
        edge_to_show(model.transformer, tokens,
                     {.word = {word.begin, word.end}, .keys = single_tokens(std::ssize(tokens))});
    const HeadToShow shown = shown_for(model, tokens, word);
    ASSERT_TRUE(edge && shown.edge) << text;
    EXPECT_EQ(shown.head, edge->effect.edge.head) << text;
    EXPECT_EQ(shown.edge->effect.edge, edge->effect.edge) << text;
    EXPECT_EQ(shown.example, "") << text;
  }
}

TEST(HeadToShow, OfTheFirstWordIsTheFirst) {
  if (!starter_files()) GTEST_SKIP() << "built without models/starter";
  const LoadedModel model = load_model("starter");
  const std::vector<std::int32_t> tokens = model.encode("Harry waited");
  const HeadToShow shown = shown_for(model, tokens, text_words(model, tokens).front());
  EXPECT_EQ(shown.head, HeadName{});
  EXPECT_FALSE(shown.edge);
}

}  // namespace
}  // namespace heed
