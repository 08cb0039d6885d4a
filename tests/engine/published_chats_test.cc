// Conversations in the templates and tokens of published models, as Hugging Face's `tokenizers`
// encodes what @huggingface/jinja renders; see tests/tokenizer/oracle/published/chats.mjs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "chat/chat_template.h"
#include "engine/model_chat.h"

namespace heed {
namespace {

// Prints how many tokens there are, and expects them to be the same.
void compare_chats(const std::filesystem::path& directory) {
  const auto tokenizer = load_tokenizer(directory);
  auto found = chat::find_chat_template(directory);
  ASSERT_TRUE(found.has_value());
  const ModelChat chat(found->source, found->name, found->special_tokens);
  const std::string file = (directory / "chats.json").string();
  std::size_t tokens = 0;
  int differ = 0;
  const OrderedJson chats = OrderedJson::parse(read_text_file(file));
  for (const OrderedJson& each : chats) {
    const auto expected = each["ids"].get<std::vector<std::int32_t>>();
    const auto text = each["text"].get<std::string>();
    EXPECT_EQ(tokenizer->encode(text), expected) << printable(text);
    const auto ids = chat.encode({.messages = each["messages"]}, *tokenizer);
    EXPECT_EQ(ids, expected) << printable(text) << "\n" << printable(tokenizer->decode(ids));
    differ += ids == expected ? 0 : 1;
    tokens += expected.size();
  }
  std::cout << directory.filename().string() << ": " << chats.size() << " chats of " << tokens
            << " tokens, " << differ << " differ\n";
}

TEST(PublishedChats, HaveTheTokensOfTheRustLibrary) {
  const char* const directory = std::getenv("HEED_PUBLISHED_CHATS");
  if (directory == nullptr) {
    GTEST_SKIP() << "HEED_PUBLISHED_CHATS is not set; tests/tokenizer/oracle/run.sh makes it";
  }
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    SCOPED_TRACE(entry.path().string());
    compare_chats(entry.path());
    ++models;
  }
  EXPECT_GE(models, 11);
}

}  // namespace
}  // namespace heed
