// Compares heed with what Jinja made of the same templates; see oracle/run.sh.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "base/files.h"
#include "chat/chat_template.h"
#include "heed/error.h"

namespace heed::chat {
namespace {

ChatInput input_of(const OrderedJson& json) {
  ChatInput input;
  input.messages = json.at("messages");
  const bool begins_reply = json.at("add_generation_prompt").get<bool>();
  input.end = begins_reply ? ChatEnd::reply_begun : ChatEnd::turn_ended;
  if (json.contains("tools")) input.tools = json.at("tools");
  if (json.contains("variables")) input.variables = json.at("variables");
  for (const auto& [name, token] : json.at("special_tokens").items()) {
    input.special_tokens[name] = token.get<std::string>();
  }
  input.strftime_now = [](const std::string& format) { return "<" + format + ">"; };
  return input;
}

// What heed makes of a record: its text, or an error.
struct Outcome {
  bool failed = false;
  std::string text;
};

Outcome outcome_of(const OrderedJson& record) {
  try {
    const ChatTemplate chat_template(record.at("template").get<std::string>(), "record");
    return {false, chat_template.render(input_of(record.at("input")))};
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
    return {true, error.what()};
  }
}

TEST(Oracle, EqualsJinja) {
  const char* const path = std::getenv("HEED_JINJA_RECORDS");
  if (path == nullptr) {
    GTEST_SKIP() << "HEED_JINJA_RECORDS is not set; tests/chat/oracle/run.sh makes it";
  }
  const OrderedJson records = OrderedJson::parse(read_text_file(path));
  std::size_t rendered = 0;
  std::size_t refused = 0;
  for (const OrderedJson& record : records) {
    const Outcome outcome = outcome_of(record);
    const bool should_fail = record.contains("error");
    const std::string expected = record.at(should_fail ? "error" : "expected").get<std::string>();
    EXPECT_EQ(outcome.failed, should_fail)
        << record.value("source", "") << record.at("template").get<std::string>().substr(0, 300)
        << "\nheed: " << outcome.text << "\nJinja: " << expected;
    if (outcome.failed != should_fail) continue;
    if (!should_fail) {
      EXPECT_EQ(outcome.text, expected)
          << record.value("source", "") << record.at("template").get<std::string>().substr(0, 300);
    }
    ++(should_fail ? refused : rendered);
  }
  std::cout << "heed equals Jinja: " << rendered << " texts, " << refused << " errors\n";
  EXPECT_GE(rendered, 2000u);
}

}  // namespace
}  // namespace heed::chat
