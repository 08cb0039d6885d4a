// Short ways to render a template in a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "chat/chat_template.h"
#include "heed/error.h"

namespace heed::chat {

inline ChatInput conversation(OrderedJson messages) {
  ChatInput input;
  input.messages = std::move(messages);
  input.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  return input;
}

inline OrderedJson message(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

inline OrderedJson three_turns() {
  return OrderedJson::array(
      {message("user", "Hi"), message("assistant", "Hello"), message("user", "Bye")});
}

inline OrderedJson with_system() {
  return OrderedJson::array({message("system", "Be kind."), message("user", "Hi")});
}

inline std::string rendered(std::string_view source, const ChatInput& input) {
  return ChatTemplate(source, "test").render(input);
}

inline std::string rendered(std::string_view source) { return rendered(source, {}); }

// Runs `call`, which must throw an Error of that code whose message holds `part`.
template <class Call>
void expect_error(Call call, ErrorCode code, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace heed::chat
