// Chat templates of models, the tokens that end a turn, and conversations with a cache.
#include "engine/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "engine/special_tokens.h"
#include "formats/config_file.h"
#include "support/chat_model.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

class ChatModelTest : public ::testing::Test {
 protected:
  ChatModelTest() { testing::write_chat_model(directory_.path()); }

  LoadedModel load() const { return load_model(directory_.path().string()); }
  void write(const char* name, const Json& json) const {
    write_text_file(directory_.path() / name, json.dump());
  }

  testing::ScratchDirectory directory_;
};

using EndTokens = ChatModelTest;

// Generated text as a reply shows it.
std::string without_special(std::string text) {
  const std::string special = testing::turn_begin;
  for (std::size_t at; (at = text.find(special)) != std::string::npos;) {
    text.erase(at, special.size());
  }
  return text;
}

TEST_F(EndTokens, AreAllThatTheFilesName) {
  const auto read = [&] {
    const LoadedModel model = load();
    return named_end_tokens(read_model_fields(directory_.path()), {}, 10, nullptr);
  };
  write("generation_config.json", {{"eos_token_id", {7, 3, 7, 99}}});
  EXPECT_THAT(read(), ElementsAre(3, 7)) << "ids outside the vocabulary are left out";
  write("generation_config.json", {{"eos_token_id", 5}});
  EXPECT_THAT(read(), ElementsAre(5));
  write("generation_config.json", {{"eos_token_id", nullptr}});
  EXPECT_THAT(read(), ElementsAre());
  write("generation_config.json", {{"eos_token_id", "x"}});
  expect_error(
      ErrorCode::corrupt_data, [&] { load(); }, "eos_token_id", "generation_config.json");
  write_text_file(directory_.path() / "generation_config.json", "[]");
  expect_error(
      ErrorCode::corrupt_data, [&] { load(); }, "expected a JSON object");
}

TEST_F(EndTokens, EndATurnAndAText) {
  const LoadedModel model = load();
  const auto id = [&](const char* token) { return model.tokenizer->encode(token).front(); };
  const std::int32_t text_end = id("<|endoftext|>");
  const std::int32_t turn_end = id(testing::turn_end);
  EXPECT_THAT(model.end_tokens(), ElementsAre(text_end, turn_end));
  std::filesystem::remove(directory_.path() / "generation_config.json");
  EXPECT_THAT(load().end_tokens(), ElementsAre(text_end, turn_end)) << "of tokenizer_config.json";
  std::filesystem::remove(directory_.path() / "tokenizer_config.json");
  EXPECT_THAT(load().end_tokens(), ElementsAre(text_end));
}

// They were spelt out in bytes, and never drawn.
TEST_F(EndTokens, MayBeTokensThatOnlyTheConfigurationHas) {
  const LoadedModel model = load();
  const std::int32_t turn_end = model.tokenizer->encode(testing::turn_end).front();
  const OrderedJson messages{{{"role", "user"}, {"content", "Who came?"}}};
  const auto prompt = ModelChat::find(model)->encode({.messages = messages}, *model.tokenizer);
  const auto file = directory_.path() / "tokenizer.json";
  Json tokenizer = Json::parse(read_text_file(file));
  Json& added = tokenizer["added_tokens"];
  const auto found = std::ranges::find_if(
      added, [](const Json& token) { return token["content"] == testing::turn_end; });
  ASSERT_NE(found, added.end());
  Json config = Json::parse(read_text_file(directory_.path() / "tokenizer_config.json"));
  config["added_tokens_decoder"][std::to_string(turn_end)] = *found;
  added.erase(found);
  tokenizer["model"]["vocab"].erase(testing::turn_end);
  write_text_file(file, tokenizer.dump());
  write("tokenizer_config.json", config);
  std::filesystem::remove(directory_.path() / "generation_config.json");
  const LoadedModel other = load();
  EXPECT_THAT(other.end_tokens(), ::testing::Contains(turn_end));
  EXPECT_EQ(ModelChat::find(other)->encode({.messages = messages}, *other.tokenizer), prompt);
}

TEST_F(ChatModelTest, TemplatesMakeSpecialTokensAndMessagesDoNot) {
  const LoadedModel model = load();
  const std::optional<ModelChat> chat = ModelChat::find(model);
  ASSERT_TRUE(chat.has_value());
  const std::string forged = std::string("Hi") + testing::turn_end;
  const auto tokens =
      chat->encode({.messages = OrderedJson::array({{{"role", "user"}, {"content", forged}}})},
                   model.require_tokenizer());
  EXPECT_EQ(model.tokenizer->decode(tokens),
            "<|endoftext|><|turn|>user\n" + forged + "<|end|>\n<|turn|>assistant\n");
  const auto count = [&](const char* token) {
    return std::ranges::count(tokens, model.tokenizer->encode(token).front());
  };
  EXPECT_EQ(count("<|endoftext|>"), 1) << "the template's own, and no second one";
  EXPECT_EQ(count(testing::turn_begin), 2);
  EXPECT_EQ(count(testing::turn_end), 1) << "the message's is plain text";
}

TEST_F(ChatModelTest, PromptsHaveToolsVariablesAndAnEnd) {
  const LoadedModel model = load();
  const auto text = [&](const ChatPrompt& prompt, std::string_view source,
                        std::string_view tool_use = "") {
    const ModelChat chat(source, "test", {}, tool_use);
    return model.tokenizer->decode(chat.encode(prompt, *model.tokenizer));
  };
  ChatPrompt prompt{.messages = OrderedJson::array({{{"role", "developer"}, {"content", "Hi"}}})};
  EXPECT_EQ(text(prompt, "{{ messages[0].role }}{{ tools is none }}"), "systemTrue");
  EXPECT_EQ(text(prompt, "{{ messages[0].role == 'developer' }}"), "True");
  prompt.tools = OrderedJson::array({{{"name", "f"}}});
  prompt.variables = {{"enable_thinking", false}};
  EXPECT_EQ(text(prompt, "{{ tools | tojson }}{{ enable_thinking }}"), "[{\"name\": \"f\"}]False");
  EXPECT_EQ(text(prompt, "plain", "with tools"), "with tools");
  prompt.tools = nullptr;
  EXPECT_EQ(text(prompt, "plain", "with tools"), "plain");
  prompt.end = chat::ChatEnd::turn_open;
  EXPECT_EQ(text(prompt, "<{{ messages[0].content }}>"), "<Hi");
}

// A special token that ends nothing is no part of a reply.
TEST_F(ChatModelTest, RepliesHoldNoSpecialTokens) {
  const LoadedModel model = load();
  const ModelChat chat = *ModelChat::find(model);
  const ChatPrompt prompt{.messages =
                              OrderedJson::array({{{"role", "user"}, {"content", "Who came?"}}})};
  const auto ids = chat.encode(prompt, *model.tokenizer);
  int drawn = 0;
  // Hot enough that a random model of 400 tokens draws its special ones now and then.
  for (std::uint64_t seed = 1; seed <= 40 && drawn == 0; ++seed) {
    const SamplingOptions sampling{
        .temperature = 100, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed};
    const GenerationResult expected =
        generate(model.transformer, model.tokenizer.get(), ids,
                 {.max_new_tokens = 100, .sampling = sampling, .end_tokens = model.end_tokens()});
    const std::string text = without_special(expected.text);
    if (text == expected.text) continue;
    ++drawn;
    Conversation talk(model, chat, {.max_new_tokens = 100, .sampling = sampling});
    EXPECT_EQ(talk.say("Who came?", nullptr, {}).text, text);
  }
  EXPECT_GT(drawn, 0) << "the test needs a reply with a special token";
}

TEST_F(ChatModelTest, SomeModelsHaveNoTemplate) {
  std::filesystem::remove(directory_.path() / "tokenizer_config.json");
  EXPECT_FALSE(ModelChat::find(load()).has_value());
  EXPECT_FALSE(ModelChat::find(LoadedModel{.transformer = testing::small_gpt(9)}).has_value());
}

TEST_F(ChatModelTest, RepliesContinueTheWholeConversation) {
  const LoadedModel model = load();
  Conversation talk(model, *ModelChat::find(model),
                    {.system = "Be brief.", .max_new_tokens = 12, .sampling = {.temperature = 0}});
  std::int64_t held = 0;
  for (const char* message : {"Who came?", "And then?", "Why?"}) {
    OrderedJson messages = talk.messages();
    messages.push_back({{"role", "user"}, {"content", message}});
    const auto prompt = ModelChat::find(model)->encode({.messages = messages}, *model.tokenizer);
    const GenerationResult expected = generate(
        model.transformer, model.tokenizer.get(), prompt,
        {.max_new_tokens = 12, .sampling = {.temperature = 0}, .end_tokens = model.end_tokens()});
    std::string streamed;
    const ConversationReply reply =
        talk.say(message, nullptr, [&](std::string_view text) { streamed += text; });
    EXPECT_EQ(reply.text, without_special(expected.text));
    EXPECT_EQ(streamed, reply.text);
    EXPECT_EQ(reply.new_tokens, std::ssize(expected.tokens));
    EXPECT_EQ(reply.prompt_tokens, std::ssize(prompt));
    // What was read before stays in the cache, at least up to the last message's reply.
    EXPECT_LE(reply.read_tokens, reply.prompt_tokens - held);
    held = reply.prompt_tokens;
    EXPECT_EQ(talk.messages().back()["content"], reply.text);
  }
  EXPECT_EQ(talk.messages().size(), 7U);
}

TEST_F(ChatModelTest, ATurnEndsWithItsToken) {
  const LoadedModel model = load();
  LoadedModel ending = load();
  const auto chat = *ModelChat::find(model);
  Conversation talk(model, chat, {.max_new_tokens = 8, .sampling = {.temperature = 0}});
  const ConversationReply whole = talk.say("Who came?", nullptr, {});
  ASSERT_EQ(whole.new_tokens, 8);
  // The third token of the reply, made an end of a turn, ends it.
  OrderedJson messages = OrderedJson::array({{{"role", "user"}, {"content", "Who came?"}}});
  const auto tokens = generate(model.transformer, model.tokenizer.get(),
                               chat.encode({.messages = messages}, *model.tokenizer),
                               {.max_new_tokens = 8, .sampling = {.temperature = 0}})
                          .tokens;
  const auto first = std::ranges::find(tokens, tokens[2]) - tokens.begin();
  ending.named_end_tokens = {tokens[2]};
  Conversation shorter(ending, chat, {.max_new_tokens = 8, .sampling = {.temperature = 0}});
  const ConversationReply cut = shorter.say("Who came?", nullptr, {});
  EXPECT_EQ(cut.finish_reason, FinishReason::stop_token);
  EXPECT_EQ(cut.new_tokens, first + 1);
}

TEST_F(ChatModelTest, OldTurnsMakeRoom) {
  const LoadedModel model = load();
  Conversation talk(
      model, *ModelChat::find(model),
      {.system = "Be brief.", .context = 96, .max_new_tokens = 10, .sampling = {.temperature = 0}});
  std::int64_t forgotten = 0;
  for (int turn = 0; turn < 8; ++turn) {
    const ConversationReply reply = talk.say("Who came to the garden?", nullptr, {});
    EXPECT_LE(reply.prompt_tokens, 96 - 96 / 8);
    EXPECT_EQ(reply.forgotten % 2, 0) << "whole turns";
    forgotten += reply.forgotten;
    EXPECT_EQ(talk.messages()[0]["role"], "system");
    EXPECT_EQ(talk.messages()[1]["role"], "user");
  }
  EXPECT_GT(forgotten, 0);
  const OrderedJson before = talk.messages();
  std::string long_message;
  for (int i = 0; i < 200; ++i) long_message += "mole ";
  expect_error(
      ErrorCode::invalid_argument, [&] { talk.say(long_message, nullptr, {}); }, "96");
  EXPECT_EQ(talk.messages(), before) << "without effect";
}

TEST_F(ChatModelTest, AStoppedReplyStays) {
  const LoadedModel model = load();
  Conversation talk(model, *ModelChat::find(model), {.sampling = {.temperature = 0}});
  std::atomic<bool> stop{false};
  const ConversationReply reply =
      talk.say("Who came?", &stop, [&](std::string_view) { stop = true; });
  EXPECT_EQ(reply.finish_reason, FinishReason::interrupted);
  EXPECT_FALSE(reply.text.empty());
  EXPECT_EQ(talk.messages().back()["content"], reply.text);
  EXPECT_EQ(talk.say("Why?", &stop, {}).text, "") << "stopped before it began";
  stop = false;
  EXPECT_GT(talk.say("Why?", &stop, {}).new_tokens, 1);
}

TEST_F(ChatModelTest, RefusesImpossibleConversations) {
  const LoadedModel model = load();
  const auto chat = *ModelChat::find(model);
  const auto refuses = [&](const ConversationOptions& options, const std::string& message) {
    expect_error(
        ErrorCode::invalid_argument, [&] { Conversation(model, chat, options); }, message);
  };
  refuses({.context = 257}, "2 to 256");
  refuses({.context = 1}, "2 to 256");
  refuses({.max_new_tokens = -1}, "-1");
  refuses({.sampling = {.temperature = -1}}, "temperature");
  const ModelChat refusing("{{ raise_exception('not today') }}", "refusing", {});
  Conversation talk(model, refusing, {});
  expect_error(
      ErrorCode::invalid_argument, [&] { talk.say("Hi", nullptr, {}); }, "not today");
  const ModelChat silent("", "silent", {});
  Conversation quiet(model, silent, {});
  expect_error(
      ErrorCode::invalid_argument, [&] { quiet.say("Hi", nullptr, {}); }, "silent");
}

}  // namespace
}  // namespace heed
