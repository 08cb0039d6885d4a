// What models have read, and the words of texts that they have not, as the server says it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/views/reading_json.h"
#include "server/explorer_support.h"
#include "server/translation_server.h"
#include "tokenizer/reading.h"

namespace heed::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::starter_explorer;
using testing::TestExplorer;

std::vector<std::string> texts_of(const Json& unread) {
  std::vector<std::string> texts;
  for (const Json& word : unread["words"]) texts.push_back(word["text"].get<std::string>());
  return texts;
}

const std::string sentence = "I love Käse, pizza with the fox and pizza";

TEST(ExplorerReading, TokenizeNamesTheWordsThatWereNotRead) {
  TestExplorer& explorer = starter_explorer();
  const Json reply = explorer.post("/api/tokenize", {{"text", sentence}});
  EXPECT_EQ(reply["read"]["words"].get<int>(), 1115);
  const Json& unread = reply["unread"];
  EXPECT_THAT(texts_of(unread), ElementsAre("Käse", "pizza", "pizza"));
  EXPECT_EQ(unread["of"].get<int>(), 8);
  EXPECT_THAT(unread["note"].get<std::string>(), HasSubstr("2 of these 8 words (Käse, pizza) are"));
  for (const Json& word : unread["words"]) {
    const auto begin = word["bytes"][0].get<std::size_t>(),
               end = word["bytes"][1].get<std::size_t>();
    EXPECT_EQ(sentence.substr(begin, end - begin), word["text"].get<std::string>());
    // Its tokens together have the word, and none of them without a part of it.
    std::string text;
    for (auto t = word["tokens"][0].get<std::size_t>(); t < word["tokens"][1].get<std::size_t>();
         ++t) {
      text += explorer.model().token_bytes(reply["tokens"][t]["id"].get<std::int32_t>());
    }
    EXPECT_THAT(text, HasSubstr(word["text"].get<std::string>()));
  }
  const Json known = explorer.post("/api/tokenize", {{"text", "The hare saw the fox."}});
  EXPECT_TRUE(known["unread"]["words"].empty());
  EXPECT_TRUE(known["unread"]["note"].is_null());
}

TEST(ExplorerReading, TracesAndGenerationsSayTheSame) {
  TestExplorer& explorer = starter_explorer();
  const Json expected = explorer.post("/api/tokenize", {{"text", sentence}});
  const Json trace = explorer.get("/api/traces/" + explorer.trace(sentence));
  EXPECT_EQ(trace["unread"], expected["unread"]);
  EXPECT_EQ(trace["read"], expected["read"]);
  EXPECT_EQ(explorer.get("/api/model")["read"], expected["read"]);
  const auto events =
      explorer.events("/api/generate", {{"text", "The hare ate pizza"}, {"max_new_tokens", 3}});
  EXPECT_EQ(events.back().data["trace"]["unread"]["words"][0]["text"].get<std::string>(), "pizza");
}

TEST(ExplorerReading, NothingIsClaimedOfAModelWithoutTheFile) {
  LoadedModel model = load_model("starter");
  model.reading = nullptr;
  TestExplorer explorer(std::move(model));
  const Json reply = explorer.post("/api/tokenize", {{"text", sentence}});
  EXPECT_TRUE(reply["read"].is_null());
  EXPECT_TRUE(reply["unread"].is_null());
  EXPECT_TRUE(explorer.get("/api/traces/" + explorer.trace(sentence))["unread"].is_null());
}

TEST(ExplorerReading, BytesOfCharactersAreNamedAndCharactersAreUnits) {
  TestExplorer& explorer = starter_explorer();
  const std::string text = "a 水火 سلام 👩‍👧 b";
  const Json trace = explorer.get("/api/traces/" + explorer.trace(text));
  std::string bytes;
  int parts = 0;
  for (const Json& token : trace["tokens"]) {
    bytes += explorer.model().token_bytes(token["id"].get<std::int32_t>());
    if (!token.contains("bytes")) continue;
    ++parts;
    EXPECT_THAT(token["text"].get<std::string>(), HasSubstr("‹")) << "not U+FFFD";
    EXPECT_EQ(token["text"].get<std::string>().find("\xEF\xBF\xBD"), std::string::npos);
  }
  EXPECT_EQ(bytes, text);
  EXPECT_GE(parts, 6);
  std::vector<std::string> words;
  for (const Json& word : trace["words"]) words.push_back(word["text"].get<std::string>());
  EXPECT_THAT(words, ::testing::IsSupersetOf({"水", "火", "سلام", "👩‍👧"}));
}

TEST(TranslationsReading, EachTextHasItsWords) {
  testing::TranslationServer server;
  const Json none = server.post("/v1/translations", {{"input", "the dog"}});
  EXPECT_TRUE(none["read"].is_null());
  EXPECT_TRUE(none["unread"][0].is_null());

  LoadedModel translator = testing::small_loaded_translator();
  translator.reading = std::make_shared<const ReadingRecord>(
      ReadingRecord{.title = "two", .tokens = 1, .words = WordSet({"the", "dog"})});
  const auto tokens = translator.encode_source("the dog sees", "the text");
  const auto unread = unread_in(translator, tokens, PairSide::source);
  ASSERT_TRUE(unread);
  EXPECT_THAT(unread->different_unread, ElementsAre("sees"));
  EXPECT_FALSE(unread_in(translator, tokens, PairSide::target))
      << "nothing is known of its targets";
}

}  // namespace
}  // namespace heed::server
