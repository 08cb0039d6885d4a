// Converts the messages of a chat to the text that a model continues. A template is a model's own,
// in Jinja, or a few strings: a pattern with {content} for each role, the text before the reply,
// and the strings that end it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/model_chat.h"
#include "tokenizer/tokenizer.h"

namespace heed::server {

class ChatTemplate {
 public:
  // "plain" or "chatml". Throws Error{not_found} for another name.
  static ChatTemplate built_in(const std::string& name);

  // A Jinja template. What ends a reply are the end tokens of the model: it has no stop strings.
  static ChatTemplate from_jinja(ModelChat chat);

  // {"system", "user", "assistant", "tool", "reply", "stop"}, as docs/server.md describes; `name`
  // is its name in error messages. Throws FieldError.
  static ChatTemplate from_json(const Json& json, const std::string& name);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& stop_strings() const { return stop_strings_; }

  // Whether it is a program in Jinja, which may use all that a prompt says, or patterns, which take
  // the roles and contents of messages and where the prompt ends.
  bool is_program() const { return jinja_.has_value(); }

  // Returns the tokens of all messages and of the text before the reply. Special tokens are
  // recognised in the template's own text, never in a message, so that no message can end its own
  // turn. Throws Error{invalid_argument} for messages that a Jinja template refuses, and
  // Error{interrupted} once `stop` is set.
  std::vector<std::int32_t> encode(const ChatPrompt& prompt, const Tokenizer& tokenizer,
                                   StopFlag stop = nullptr) const;

 private:
  struct Pattern {
    std::string before;
    std::string after;
  };
  const Pattern& pattern_of(const OrderedJson& message) const;

  std::string name_;
  std::optional<ModelChat> jinja_;  // in place of the patterns
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

// The template named by `wanted`: a built-in name, else a file, of Jinja if it is called *.jinja
// and of JSON otherwise. Without it the model's own template, in Jinja; if heed cannot run that
// one, "chatml" where it has ChatML's markers, else "plain" with a warning. A model without one
// gets "plain". Throws Error{not_found}, Error{corrupt_data} or Error{unsupported} for what
// `wanted` names.
ChosenTemplate choose_chat_template(const std::string& wanted, const LoadedModel& model);

}  // namespace heed::server
