#include "chat/chat_template.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "chat/chat_test_support.h"

namespace heed::chat {
namespace {

class FindChatTemplate : public testing::Test {
 protected:
  FindChatTemplate()
      : directory_(std::filesystem::temp_directory_path() /
                   fmt::format("heed_chat_{}_{}", getpid(),
                               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(directory_);
  }
  ~FindChatTemplate() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, std::string_view text) const {
    write_text_file(directory_ / name, text);
  }
  void expect_corrupt(const std::string& part) const {
    expect_error([&] { find_chat_template(directory_); }, ErrorCode::corrupt_data, part);
  }

  std::filesystem::path directory_;
};

TEST_F(FindChatTemplate, NothingWithoutATemplate) {
  EXPECT_FALSE(find_chat_template(directory_));
  write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  EXPECT_FALSE(find_chat_template(directory_));
}

TEST_F(FindChatTemplate, AStringAndItsTokens) {
  write("tokenizer_config.json",
        R"({"chat_template": "{{ bos_token }}", "bos_token": "<s>", "pad_token": null,
            "eos_token": {"content": "</s>", "lstrip": false}})");
  const auto found = find_chat_template(directory_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, "{{ bos_token }}");
  EXPECT_EQ(found->special_tokens,
            (std::map<std::string, std::string>{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  ChatInput input;
  input.special_tokens = found->special_tokens;
  EXPECT_EQ(ChatTemplate(found->source, found->name).render(input), "<s>");
}

TEST_F(FindChatTemplate, AListOfNamedOnes) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                     {"name": "default", "template": "d"}]})");
  const auto found = find_chat_template(directory_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, "d");
  EXPECT_EQ(found->tool_use, "t");
}

TEST_F(FindChatTemplate, AFileComesFirst) {
  write("tokenizer_config.json", R"({"chat_template": "config", "eos_token": "</s>"})");
  write("chat_template.jinja", "file");
  const auto found = find_chat_template(directory_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, "file");
  EXPECT_EQ(found->special_tokens.at("eos_token"), "</s>");
}

TEST_F(FindChatTemplate, DamagedFilesAreNamed) {
  write("tokenizer_config.json", "{");
  expect_corrupt("tokenizer_config.json");
  write("tokenizer_config.json", "[]");
  expect_corrupt("not a JSON object");
  write("tokenizer_config.json", R"({"chat_template": 5})");
  expect_corrupt("chat_template must be a string, not 5");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  expect_corrupt("must be a list of");
  write("tokenizer_config.json", R"({"chat_template": "x", "bos_token": {"id": 1}})");
  expect_corrupt("bos_token has no \"content\"");
}

}  // namespace
}  // namespace heed::chat
