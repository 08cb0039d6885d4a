// POST /v1/chat/completions.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "server/chat_template.h"
#include "server/test_server.h"
#include "support/chat_model.h"

namespace heed::server {
namespace {

using testing::events;
using testing::starter_server;
using testing::TestServer;

const Json& messages() {
  static const Json messages{{{"role", "system"}, {"content", "A story."}},
                             {{"role", "user"}, {"content", "Tell me of the mole."}}};
  return messages;
}

constexpr const char* dialogue = "A story.\n\nUser: Tell me of the mole.\nAssistant:";

Json chat(Json body, int status = 200) {
  if (!body.contains("messages")) body["messages"] = messages();
  return starter_server().post("/v1/chat/completions", body, status);
}

std::vector<Json> streamed_chat(Json body) {
  if (!body.contains("messages")) body["messages"] = messages();
  return events(starter_server().stream("/v1/chat/completions", std::move(body)));
}

std::string without_leading_space(const std::string& text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

TEST(Chat, ContinuesTheTemplate) {
  const Json options{{"max_tokens", 30}, {"seed", 3}, {"stop", {"zebra"}}};
  const Json reply = chat(options);
  EXPECT_TRUE(reply["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(reply["object"], "chat.completion");
  EXPECT_EQ(reply["model"], "starter");
  const Json& choice = reply["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_TRUE(choice["logprobs"].is_null());
  Json continued = options;
  continued["prompt"] = dialogue;
  continued["stop"] = {"zebra", "\nUser:", "\nAssistant:"};
  const Json expected = starter_server().post("/v1/completions", continued);
  EXPECT_EQ(choice["message"]["content"],
            without_leading_space(expected["choices"][0]["text"].get<std::string>()));
  EXPECT_EQ(choice["finish_reason"], expected["choices"][0]["finish_reason"]);
  EXPECT_EQ(reply["usage"], expected["usage"]);
}

TEST(Chat, TakesContentInParts) {
  const Json parts{{{"type", "text"}, {"text", "Tell me "}},
                   {{"type", "text"}, {"text", "of the mole."}}};
  const Json options{{"max_tokens", 10}, {"temperature", 0}};
  Json body = options;
  body["messages"] = {{{"role", "developer"}, {"content", "A story."}},
                      {{"role", "user"}, {"content", parts}}};
  EXPECT_EQ(chat(body)["choices"][0]["message"], chat(options)["choices"][0]["message"]);
}

TEST(Chat, StreamsTheSameReply) {
  Json body{{"max_completion_tokens", 25},
            {"seed", 4},
            {"n", 2},
            {"logprobs", true},
            {"top_logprobs", 2}};
  const Json whole = chat(body);
  body["stream_options"] = {{"include_usage", true}};
  const std::vector<Json> chunks = streamed_chat(body);
  std::vector<std::string> texts(2);
  std::vector<Json> scores{Json::array(), Json::array()};
  std::vector<Json> ends(2);
  std::vector<int> roles(2);
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(chunks[i]["id"], chunks[0]["id"]);
    EXPECT_TRUE(chunks[i].at("usage").is_null());
    ASSERT_EQ(chunks[i]["choices"].size(), 1U);
    const Json& choice = chunks[i]["choices"][0];
    const std::size_t index = choice["index"];
    ASSERT_LT(index, 2U);
    EXPECT_TRUE(ends[index].is_null()) << "nothing follows the finish_reason";
    const Json& delta = choice["delta"];
    if (delta.contains("role")) {
      EXPECT_EQ(texts[index], "") << "the role comes first";
      EXPECT_EQ(delta["role"], "assistant");
      ++roles[index];
    }
    texts[index] += delta.value("content", "");
    if (!choice["logprobs"].is_null()) {
      for (const Json& token : choice["logprobs"]["content"]) scores[index].push_back(token);
    }
    ends[index] = choice["finish_reason"];
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(roles[i], 1);
    EXPECT_EQ(whole["choices"][i]["message"]["content"], texts[i]);
    EXPECT_EQ(whole["choices"][i]["finish_reason"], ends[i]);
    EXPECT_EQ(scores[i], whole["choices"][i]["logprobs"]["content"]);
  }
  EXPECT_TRUE(chunks.back()["choices"].empty());
  EXPECT_EQ(chunks.back()["usage"], whole["usage"]);
  for (const Json& chunk : streamed_chat({{"max_tokens", 2}})) {
    EXPECT_FALSE(chunk.contains("usage"));
  }
}

TEST(Chat, ScoresEveryToken) {
  const Json reply =
      chat({{"max_tokens", 12}, {"temperature", 0}, {"logprobs", true}, {"top_logprobs", 3}});
  const Json& content = reply["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 12U);
  std::string text;
  for (const Json& token : content) {
    ASSERT_EQ(token["top_logprobs"].size(), 3U);
    EXPECT_EQ(token["top_logprobs"][0]["token"], token["token"]);  // drawn greedily
    EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);
    EXPECT_LE(token["logprob"].get<double>(), 0);
    for (const Json& byte : token["bytes"]) text += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(reply["choices"][0]["message"]["content"], without_leading_space(text));
  const Json none = chat({{"max_tokens", 2}, {"logprobs", true}});
  EXPECT_EQ(none["choices"][0]["logprobs"]["content"][0]["top_logprobs"], Json::array());
}

TEST(Chat, FillsTheContextWithoutALimit) {
  // One token again and again never spells the user's turn.
  const std::int32_t token =
      starter_server().post("/tokenize", {{"content", " moon"}})["tokens"][0];
  const Json reply = chat({{"ignore_eos", true}, {"logit_bias", {{std::to_string(token), 100}}}});
  const std::int64_t prompt = reply["usage"]["prompt_tokens"];
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["usage"]["completion_tokens"], 257 - prompt);
}

// The model must not write the user's next turn.
TEST(Chat, EndsWhereTheUsersTurnBegins) {
  ServeOptions options;
  options.chat_template = "plain";
  const TestServer plain(options);
  const std::string greedy =
      plain.post("/v1/chat/completions", {{"messages", messages()},
                                          {"max_tokens", 40},
                                          {"temperature", 0}})["choices"][0]["message"]["content"];
  const heed::testing::TemporaryDirectory directory;
  const std::string stop = greedy.substr(greedy.size() / 2, 6);
  const Json same{{"system", "{content}\n\n"},
                  {"user", "User: {content}\n"},
                  {"assistant", "Assistant: {content}\n"},
                  {"reply", "Assistant:"},
                  {"stop", {stop}}};
  write_text_file(directory / "same.json", same.dump());
  options.chat_template = (directory / "same.json").string();
  const TestServer stopping(options);
  EXPECT_EQ(stopping.get("/props")["chat_template"], "same.json");
  const Json choice = stopping.post(
      "/v1/chat/completions",
      {{"messages", messages()}, {"max_tokens", 40}, {"temperature", 0}})["choices"][0];
  EXPECT_EQ(choice["message"]["content"], greedy.substr(0, greedy.find(stop)));
  EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST(Chat, UsesTheModelsOwnTemplate) {
  const heed::testing::ScratchDirectory directory;
  heed::testing::write_chat_model(directory.path());
  const TestServer server({}, directory.path().string());
  EXPECT_EQ(server.get("/props")["chat_template"], "chat_template of tokenizer_config.json");
  const Json options{{"max_tokens", 12}, {"temperature", 0}};
  Json asked = options;
  asked["messages"] = messages();
  const Json reply = server.post("/v1/chat/completions", asked);
  Json continued = options;
  continued["prompt"] =
      "<|endoftext|><|turn|>system\nA story.<|end|>\n<|turn|>user\nTell me of the mole.<|end|>\n"
      "<|turn|>assistant\n";
  const Json expected = server.post("/v1/completions", continued);
  EXPECT_EQ(reply["usage"], expected["usage"]) << "no token was added";
  EXPECT_EQ(reply["choices"][0]["message"]["content"],
            without_leading_space(expected["choices"][0]["text"].get<std::string>()));
  // A bias draws the token that ends a turn: the reply is empty and stopped.
  const std::int32_t turn_end =
      server.post("/tokenize", {{"content", heed::testing::turn_end}})["tokens"][0];
  asked["logit_bias"] = {{std::to_string(turn_end), 100}};
  const Json ended = server.post("/v1/chat/completions", asked);
  EXPECT_EQ(ended["choices"][0]["message"]["content"], "");
  EXPECT_EQ(ended["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(ended["usage"]["completion_tokens"], 1);
  // What the template refuses is the client's error.
  asked["messages"] = {{{"role", "tool"}, {"content", "12"}}};
  const Json error = server.post("/v1/chat/completions", asked, 400)["error"];
  EXPECT_NE(error["message"].get<std::string>().find("no tools here"), std::string::npos) << error;
}

// A server of a model whose template is `source`.
class TemplateServer {
 public:
  explicit TemplateServer(const std::string& source) {
    heed::testing::write_chat_model(directory_.path());
    write_text_file(directory_.path() / "chat_template.jinja", source);
    server_ = std::make_unique<TestServer>(ServeOptions{}, directory_.path().string());
  }

  const TestServer& server() const { return *server_; }

  // The reply to a chat is that to the prompt `text`, by the logits of its first token.
  void expect_prompt(Json chat, const std::string& text) const {
    chat.update({{"max_tokens", 1}, {"temperature", 0}, {"logprobs", true}, {"top_logprobs", 5}});
    const Json reply = server_->post("/v1/chat/completions", chat);
    const Json expected =
        server_->post("/v1/completions",
                      {{"prompt", text}, {"max_tokens", 1}, {"temperature", 0}, {"logprobs", 5}});
    EXPECT_EQ(reply["usage"], expected["usage"]) << text;
    const Json& scored = reply["choices"][0]["logprobs"]["content"];
    const Json& scores = expected["choices"][0]["logprobs"]["token_logprobs"];
    ASSERT_EQ(scored.size(), 1U);
    EXPECT_EQ(scored[0]["logprob"], scores[0]) << text;
  }

  Json refused(const Json& chat) const {
    return server_->post("/v1/chat/completions", chat, 400)["error"];
  }

 private:
  heed::testing::ScratchDirectory directory_;
  std::unique_ptr<TestServer> server_;
};

Json user(const std::string& content) { return {{"role", "user"}, {"content", content}}; }

TEST(ChatPrompts, GiveTheTemplateEveryFieldOfAMessage) {
  const TemplateServer chats(
      "{% for m in messages %}[{{ m.role }} {{ m.items() | list | length }} {{ m.name }} "
      "{{ m.reasoning_content }} {{ m.tool_call_id }} {{ m.content is none }}"
      "{% for c in m.tool_calls or [] %}{{ c.id }} {{ c.function.name }} "
      "{{ c.function.arguments | tojson }}{% endfor %}]{% endfor %}");
  const Json call{{"id", "c1"},
                  {"type", "function"},
                  {"function", {{"name", "look"}, {"arguments", R"({"z": 1, "a": [2.0]})"}}}};
  const Json messages{{{"role", "user"}, {"content", "Hi"}, {"name", "Ann"}, {"refusal", nullptr}},
                      {{"role", "assistant"},
                       {"content", nullptr},
                       {"tool_calls", {call}},
                       {"reasoning_content", "why"}},
                      {{"role", "tool"}, {"content", "21"}, {"tool_call_id", "c1"}},
                      {{"role", "ipython"}, {"content", "22"}}};
  chats.expect_prompt({{"messages", messages}},
                      "[user 3 Ann   False][assistant 4  why  Truec1 look {\"z\": 1, \"a\": [2.0]}]"
                      "[tool 3   c1 False][ipython 2    False]");
  Json text = messages;
  text[1]["tool_calls"][0]["function"]["arguments"] = "look there";
  chats.expect_prompt({{"messages", {text[1]}}}, "[assistant 4  why  Truec1 look \"look there\"]");
  const auto refuses = [&](Json change, const std::string& param) {
    Json message{{"role", "assistant"}, {"content", nullptr}};
    message.update(change);
    EXPECT_EQ(chats.refused({{"messages", {message}}})["param"], param);
  };
  refuses({{"tool_calls", 5}}, "messages[0].tool_calls");
  refuses({{"tool_calls", {5}}}, "messages[0].tool_calls[0]");
  refuses({{"tool_calls", {{{"function", 5}}}}}, "messages[0].tool_calls[0].function");
  refuses({{"role", "user"}}, "messages[0].content");
  refuses({{"function_call", {{"name", "x"}}}}, "messages[0].function_call");
}

TEST(ChatPrompts, OfferToolsAndVariables) {
  const TemplateServer chats(
      "{{ tools | tojson }} {{ enable_thinking }} {{ documents | tojson }} "
      "{{ reasoning_effort }}");
  // The order of the fields is the client's: templates write it.
  const std::string body =
      R"({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "logit_bias": {"1": 0},
          "tools": [{"type": "function", "function": {"name": "f", "description": "d", "a": 1.0}}],
          "chat_template_kwargs": {"enable_thinking": false}})";
  auto client = chats.server().client();
  const auto reply = client.Post("/v1/chat/completions", body, "application/json");
  ASSERT_TRUE(reply);
  const std::string prompt =
      R"([{"type": "function", "function": {"name": "f", "description": "d", "a": 1.0}}] False )"
      R"(null )";
  const Json expected =
      chats.server().post("/v1/completions", {{"prompt", prompt}, {"max_tokens", 1}});
  EXPECT_EQ(Json::parse(reply->body)["usage"], expected["usage"]);
  const Json tool{{"type", "function"}, {"function", {{"name", "f"}}}};
  chats.expect_prompt({{"messages", {user("Hi")}},
                       {"tools", {tool}},
                       {"documents", {{{"title", "t"}}}},
                       {"reasoning_effort", "low"},
                       {"tool_choice", "none"}},
                      R"(null  [{"title": "t"}] low)");
}

TEST(ChatPrompts, EndWhereTheRequestSays) {
  const TemplateServer chats(heed::testing::chat_template_source);
  const Json messages{user("Who?"), {{"role", "assistant"}, {"content", "A mo"}}};
  const std::string begun = "<|endoftext|><|turn|>user\nWho?<|end|>\n<|turn|>assistant\nA mo";
  chats.expect_prompt({{"messages", messages}}, begun + "<|end|>\n<|turn|>assistant\n");
  chats.expect_prompt({{"messages", messages}, {"add_generation_prompt", false}},
                      begun + "<|end|>\n");
  chats.expect_prompt({{"messages", messages}, {"continue_final_message", true}}, begun);
  // The rest of a message begins as the model writes it, white space included.
  const Json options{{"max_tokens", 12}, {"temperature", 0}};
  Json continued = options;
  continued.update({{"messages", messages}, {"continue_final_message", true}});
  Json completed = options;
  completed["prompt"] = begun;
  EXPECT_EQ(
      chats.server().post("/v1/chat/completions", continued)["choices"][0]["message"]["content"],
      chats.server().post("/v1/completions", completed)["choices"][0]["text"]);
}

TEST(ChatPrompts, WarnOfWhatAPatternLeavesOut) {
  auto client = starter_server().client();
  const Json body{
      {"messages", {{{"role", "user"}, {"content", "Hi"}, {"name", "Ann"}, {"refusal", nullptr}}}},
      {"max_tokens", 1},
      {"chat_template_kwargs", {{"enable_thinking", false}}}};
  const auto reply = client.Post("/v1/chat/completions", body.dump(), "application/json");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->get_header_value("X-Heed-Warning"),
            "ignored fields: chat_template_kwargs, messages[0].name");
}

TEST(ChatPrompts, RefuseHostileObjects) {
  const TemplateServer chats("{{ messages[0].content }}");
  Json message = user("Hi");
  for (int i = 0; i < 2000; ++i) message["k" + std::to_string(i)] = 1;
  EXPECT_NE(chats.refused({{"messages", {message}}})["message"].get<std::string>().find("1024"),
            std::string::npos);
  EXPECT_EQ(chats.refused({{"messages", {user("Hi")}}, {"tools", {5}}})["param"], "tools[0]");
  EXPECT_EQ(chats.refused({{"messages", {user("Hi")}},
                           {"tools", {Json::object()}},
                           {"tool_choice", "required"}})["param"],
            "tool_choice");
  EXPECT_EQ(chats.refused(
                {{"messages", {user("Hi")}}, {"chat_template_kwargs", {{"tools", 1}}}})["param"],
            "chat_template_kwargs");
}

// --request-time ends a template that would run for longer.
TEST(ChatPrompts, EndWithTheirRequest) {
  const heed::testing::ScratchDirectory directory;
  heed::testing::write_chat_model(directory.path());
  write_text_file(
      directory.path() / "chat_template.jinja",
      "{% for a in range(1000000) %}{% for b in range(1000000) %}{% endfor %}{% endfor %}");
  const LoadedModel model = load_model(directory.path().string());
  const ChosenTemplate chosen = choose_chat_template("", model);
  const std::atomic<bool> stop{true};
  const ChatPrompt prompt{.messages = OrderedJson::array({{{"role", "user"}, {"content", "a"}}})};
  heed::testing::expect_error(
      ErrorCode::interrupted,
      [&] { chosen.chat_template.encode(prompt, model.require_tokenizer(), &stop); }, "stopped");
}

// A special token that ends nothing is drawn and not shown, unless it is asked for.
TEST(ChatPrompts, RepliesLeaveSpecialTokensOut) {
  const TemplateServer chats(heed::testing::chat_template_source);
  const std::int32_t turn =
      chats.server().post("/tokenize", {{"content", heed::testing::turn_begin}})["tokens"][0];
  Json body{{"messages", {user("Hi")}},
            {"max_tokens", 3},
            {"temperature", 0},
            {"logprobs", true},
            {"logit_bias", {{std::to_string(turn), 100}}}};
  const auto content = [&] {
    const Json choice = chats.server().post("/v1/chat/completions", body)["choices"][0];
    EXPECT_EQ(choice["logprobs"]["content"].size(), 3U) << "it is counted and scored";
    return choice["message"]["content"].get<std::string>();
  };
  EXPECT_EQ(content(), "");
  body["skip_special_tokens"] = false;
  EXPECT_EQ(content(), "<|turn|><|turn|><|turn|>");
  // Stop strings find it either way.
  body["skip_special_tokens"] = true;
  body["stop"] = heed::testing::turn_begin;
  const Json stopped = chats.server().post("/v1/chat/completions", body);
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(stopped["usage"]["completion_tokens"], 1);
}

TEST(Chat, RefusesWhatItCannotDo) {
  struct Case {
    Json fields;
    std::string param;
    std::string code;
  };
  const auto message = [](Json json) { return Json{{"messages", Json::array({json})}}; };
  const Json image{{{"type", "image_url"}, {"image_url", {{"url", "data:"}}}}};
  const std::vector<Case> cases{
      {{{"messages", nullptr}}, "messages", "missing_required_parameter"},
      {{{"messages", Json::array()}}, "messages", "invalid_value"},
      {{{"messages", "hello"}}, "messages", "invalid_type"},
      {{{"messages", std::vector<Json>(4097, Json{{"role", "user"}, {"content", ""}})}},
       "messages",
       "invalid_value"},
      {message("hello"), "messages[0]", "invalid_type"},
      {message({{"content", "a"}}), "messages[0].role", "missing_required_parameter"},
      {message({{"role", "bard"}, {"content", "a"}}), "messages[0].role", "invalid_value"},
      {message({{"role", "user"}}), "messages[0].content", "missing_required_parameter"},
      {message({{"role", "user"}, {"content", 5}}), "messages[0].content", "invalid_type"},
      {message({{"role", "user"}, {"content", image}}), "messages[0].content[0].type",
       "unsupported_parameter"},
      {message({{"role", "assistant"}, {"tool_calls", {{{"id", "a"}}}}}), "messages[0].tool_calls",
       "unsupported_parameter"},
      {message({{"role", "assistant"}, {"function_call", {{"name", "a"}}}}),
       "messages[0].function_call", "unsupported_parameter"},
      {{{"add_generation_prompt", 1}}, "add_generation_prompt", "invalid_type"},
      {{{"continue_final_message", true}, {"add_generation_prompt", true}},
       "continue_final_message",
       "invalid_value"},
      {{{"skip_special_tokens", "no"}}, "skip_special_tokens", "invalid_type"},
      {message({{"role", "user"}, {"content", std::string(5000, 'a')}}), "messages",
       "context_length_exceeded"},
      {{{"tools", {{{"type", "function"}}}}}, "tools", "unsupported_parameter"},
      {{{"response_format", {{"type", "json_schema"}}}},
       "response_format",
       "unsupported_parameter"},
      {{{"modalities", {"text", "audio"}}}, "modalities", "unsupported_parameter"},
      {{{"audio", {{"voice", "x"}}}}, "audio", "unsupported_parameter"},
      {{{"logprobs", 5}}, "logprobs", "invalid_type"},
      {{{"top_logprobs", 5}}, "top_logprobs", "invalid_value"},
      {{{"logprobs", true}, {"top_logprobs", 21}}, "top_logprobs", "invalid_value"},
      {{{"max_completion_tokens", "5"}}, "max_completion_tokens", "invalid_type"},
      {{{"n", 129}}, "n", "invalid_value"},
      {{{"model", 5}}, "model", "invalid_type"},
  };
  for (const Case& refused : cases) {
    const Json error = chat(refused.fields, 400)["error"];
    EXPECT_EQ(error["param"], refused.param) << error;
    EXPECT_EQ(error["code"], refused.code) << error;
    EXPECT_EQ(error["type"], "invalid_request_error");
  }
}

}  // namespace
}  // namespace heed::server
