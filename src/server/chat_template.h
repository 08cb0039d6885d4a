// Converts the messages of a chat to the text that a model continues.  A template is a few strings,
// not a program: a pattern with {content} for each role, the text before the reply, and the strings
// that end it. Jinja templates of published models are not supported; if one has the markers of
// ChatML, the built-in "chatml" is used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace heed::server {

enum class ChatRole { system, user, assistant, tool };

struct ChatMessage {
  ChatRole role = ChatRole::user;
  std::string content;
};

class ChatTemplate {
 public:
  // "plain" or "chatml". Throws Error{not_found} for another name.
  static ChatTemplate built_in(const std::string& name);

  // {"system", "user", "assistant", "tool", "reply", "stop"}, as docs/server.md describes; `name`
  // is its name in error messages. Throws FieldError.
  static ChatTemplate from_json(const Json& json, const std::string& name);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& stop_strings() const { return stop_strings_; }

  // Returns the tokens of all messages and of the text before the reply. Special tokens are
  // recognised in the template's own text, never in a message, so that no message can end its own
  // turn.
  std::vector<std::int32_t> encode(const std::vector<ChatMessage>& messages,
                                   const Tokenizer& tokenizer) const;

 private:
  struct Pattern {
    std::string before;
    std::string after;
  };
  const Pattern& pattern_of(ChatRole role) const;

  std::string name_;
  Pattern system_;
  Pattern user_;
  Pattern assistant_;
  Pattern tool_;
  std::string reply_;
  std::vector<std::string> stop_strings_;
};

struct ChosenTemplate {
  ChatTemplate chat_template;
  std::string warning;  // what the user should know of the choice; empty: nothing
};

// The template named by `wanted` (a built-in name, else a file of JSON); without it the model's own
// template if supported, else "plain". `model` is the name or directory that the model was loaded
// from. Throws Error{not_found} or Error{corrupt_data} for what `wanted` names.
ChosenTemplate choose_chat_template(const std::string& wanted, const std::string& model);

}  // namespace heed::server
