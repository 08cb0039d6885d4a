// Chat templates: what a chat becomes, and which template a model gets.
#include "server/chat_template.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "engine/loaded_model.h"
#include "server/fields.h"
#include "server/test_server.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

using heed::testing::expect_error;
using heed::testing::TemporaryDirectory;

const Tokenizer& tokenizer() { return *testing::starter_model().tokenizer; }

OrderedJson message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

const ChatPrompt& chat_prompt() {
  static const ChatPrompt prompt{
      .messages = OrderedJson::array({message("system", "Be brief."), message("user", "Who came?"),
                                      message("assistant", "A mole."), message("tool", "12"),
                                      message("user", "And then?")})};
  return prompt;
}

TEST(ChatTemplate, PlainIsADialogue) {
  const ChatTemplate plain = ChatTemplate::built_in("plain");
  EXPECT_EQ(tokenizer().decode(plain.encode(chat_prompt(), tokenizer())),
            "Be brief.\n\nUser: Who came?\nAssistant: A mole.\nUser: 12\nUser: And then?\n"
            "Assistant:");
  EXPECT_EQ(plain.stop_strings(), (std::vector<std::string>{"\nUser:", "\nAssistant:"}));
}

TEST(ChatTemplate, ChatmlHasMarkers) {
  const ChatTemplate chatml = ChatTemplate::built_in("chatml");
  const ChatPrompt prompt{.messages = OrderedJson::array(
                              {message("system", "Be brief."), message("user", "Who came?")})};
  EXPECT_EQ(tokenizer().decode(chatml.encode(prompt, tokenizer())),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWho came?<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(chatml.stop_strings().front(), "<|im_end|>");
}

// With patterns, the end of a prompt is where its pieces end.
TEST(ChatTemplate, EndsWhereTheRequestSays) {
  const ChatTemplate plain = ChatTemplate::built_in("plain");
  ChatPrompt prompt{
      .messages = OrderedJson::array({message("user", "Who came?"), message("assistant", "A mo")})};
  const auto text = [&](chat::ChatEnd end) {
    prompt.end = end;
    return tokenizer().decode(plain.encode(prompt, tokenizer()));
  };
  EXPECT_EQ(text(chat::ChatEnd::reply_begun), "User: Who came?\nAssistant: A mo\nAssistant:");
  EXPECT_EQ(text(chat::ChatEnd::turn_ended), "User: Who came?\nAssistant: A mo\n");
  EXPECT_EQ(text(chat::ChatEnd::turn_open), "User: Who came?\nAssistant: A mo");
}

// A message that spells a special token must not become it: it could end its own turn.
TEST(ChatTemplate, MessagesHoldNoSpecialTokens) {
  const std::string special(end_of_text_name);
  const std::int32_t id = tokenizer().end_of_text().value();
  const Json json{{"system", "{content}"},
                  {"user", "U" + special + "{content}" + special},
                  {"assistant", "{content}"},
                  {"reply", special + "A"}};
  const auto tokens =
      ChatTemplate::from_json(json, "marked")
          .encode({.messages = OrderedJson::array({message("user", "x" + special + "y")})},
                  tokenizer());
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), id), 3);
  EXPECT_EQ(tokenizer().decode(tokens),
            "U" + special + "x" + special + "y" + special + special + "A");
}

TEST(ChatTemplate, RefusesWhatIsNoTemplate) {
  const Json valid{
      {"system", "{content}"}, {"user", "{content}"}, {"assistant", "{content}"}, {"reply", ""}};
  ChatTemplate::from_json(valid, "valid");
  const auto refuses = [&](const Json& change, const std::string& message) {
    Json json = valid;
    json.update(change);
    expect_error(
        ErrorCode::invalid_argument, [&] { ChatTemplate::from_json(json, "t"); }, message);
  };
  refuses({{"user", "U:"}}, "user of chat template 't' must hold {content} once");
  refuses({{"user", "{content}{content}"}}, "once");
  refuses({{"reply", nullptr}}, "chat template 't' has no \"reply\"");
  refuses({{"stop", {""}}}, "empty string");
  refuses({{"replay", "x"}}, "did you mean \"reply\"?");
  expect_error(
      ErrorCode::not_found, [] { ChatTemplate::built_in("jinja"); }, "'plain'", "'chatml'");
}

class ChosenTemplateTest : public ::testing::Test {
 protected:
  ChosenTemplate choose(const std::string& wanted = "") const {
    return choose_chat_template(wanted, model_);
  }
  void write(const std::string& name, const Json& json) const {
    write_text_file(directory_ / name, json.dump());
  }
  std::string text_of(const ChatTemplate& chat_template) const {
    return tokenizer().decode(chat_template.encode(chat_prompt(), tokenizer()));
  }
  TemporaryDirectory directory_;
  LoadedModel model_{.name = "random",
                     .transformer = heed::testing::small_gpt(9),
                     .tokenizer = nullptr,
                     .directory = directory_.path()};
};

TEST_F(ChosenTemplateTest, IsTheModelsOwn) {
  EXPECT_EQ(choose().chat_template.name(), "plain");
  EXPECT_EQ(choose().warning, "");
  write("tokenizer_config.json", {{"model_max_length", 1024}});
  EXPECT_EQ(choose().chat_template.name(), "plain");
  EXPECT_EQ(choose().warning, "");
  const std::string jinja =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}";
  write("tokenizer_config.json", {{"chat_template", jinja}, {"bos_token", "<|begin|>"}});
  const std::string expected =
      "<|begin|>[system] Be brief.\n[user] Who came?\n[assistant] A mole.\n[tool] 12\n"
      "[user] And then?\n";
  EXPECT_EQ(text_of(choose().chat_template), expected);
  EXPECT_EQ(choose().chat_template.name(), "chat_template of tokenizer_config.json");
  EXPECT_TRUE(choose().chat_template.stop_strings().empty());
  EXPECT_EQ(choose().warning, "");
  write("tokenizer_config.json",
        {{"bos_token", "<|begin|>"},
         {"chat_template",
          {{{"name", "tools"}, {"template", "x"}}, {{"name", "default"}, {"template", jinja}}}}});
  EXPECT_EQ(text_of(choose().chat_template), expected);
  write_text_file(directory_ / "chat_template.jinja", "{{ messages[0]['content'] }}");
  EXPECT_EQ(choose().chat_template.name(), "chat_template.jinja");
  EXPECT_EQ(text_of(choose().chat_template), "Be brief.");
  EXPECT_EQ(choose("chatml").chat_template.name(), "chatml") << "what is named goes first";
}

// Include is a part of Jinja that heed does not have.
TEST_F(ChosenTemplateTest, IsAnotherWhereTheModelsCannotBeRun) {
  write("tokenizer_config.json", {{"chat_template", "{% include 'x' %}[INST] … [/INST]"}});
  EXPECT_EQ(choose().chat_template.name(), "plain");
  EXPECT_NE(choose().warning.find("cannot be applied"), std::string::npos) << choose().warning;
  EXPECT_NE(choose().warning.find("include"), std::string::npos) << choose().warning;
  EXPECT_EQ(choose("chatml").chat_template.name(), "chatml");
  EXPECT_EQ(choose("chatml").warning, "");
  write("tokenizer_config.json", {{"chat_template", "{% include 'x' %}<|im_start|><|im_end|>"}});
  EXPECT_EQ(choose().chat_template.name(), "chatml");
  EXPECT_EQ(choose().warning, "");
  write_text_file(directory_ / "tokenizer_config.json", "{");
  EXPECT_EQ(choose().chat_template.name(), "plain");
  EXPECT_NE(choose().warning.find("cannot be applied"), std::string::npos) << choose().warning;
}

TEST_F(ChosenTemplateTest, MayBeAJinjaFile) {
  write_text_file(directory_ / "mine.jinja", "Q: {{ messages[-1]['content'] }}\nA:");
  const ChosenTemplate chosen = choose((directory_ / "mine.jinja").string());
  EXPECT_EQ(chosen.chat_template.name(), "mine.jinja");
  EXPECT_EQ(text_of(chosen.chat_template), "Q: And then?\nA:");
  write_text_file(directory_ / "mine.jinja", "{% if %}");
  expect_error(ErrorCode::corrupt_data, [&] { choose((directory_ / "mine.jinja").string()); });
}

TEST_F(ChosenTemplateTest, MayBeAFile) {
  write("mine.json", {{"system", "{content}\n"},
                      {"user", "Q: {content}\n"},
                      {"assistant", "A: {content}\n"},
                      {"reply", "A:"},
                      {"stop", "\nQ:"}});
  const ChosenTemplate chosen = choose((directory_ / "mine.json").string());
  EXPECT_EQ(chosen.chat_template.name(), "mine.json");
  EXPECT_EQ(chosen.chat_template.stop_strings(), std::vector<std::string>{"\nQ:"});
  expect_error(
      ErrorCode::not_found, [&] { choose("nowhere.json"); }, "plain, chatml", "nowhere");
  write_text_file(directory_ / "mine.json", "[");
  expect_error(ErrorCode::corrupt_data, [&] { choose((directory_ / "mine.json").string()); });
}

}  // namespace
}  // namespace heed::server
