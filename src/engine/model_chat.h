// The chat template of a model, and the prompts that it makes of conversations.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "chat/chat_template.h"
#include "engine/loaded_model.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// What a prompt says. Names of OpenAI's requests, of which templates know more or fewer.
struct ChatPrompt {
  OrderedJson messages = OrderedJson::array();    // [{"role", "content", …}]
  OrderedJson tools;                              // null: none
  OrderedJson variables = OrderedJson::object();  // of the template, such as enable_thinking
  chat::ChatEnd end = chat::ChatEnd::reply_begun;
};

// The template of a model's directory or GGUF file; nothing where there is none, or no file.
std::optional<chat::FoundChatTemplate> find_chat_template(const LoadedModel& model);

// Copies share the template. Threads may use one at the same time.
class ModelChat {
 public:
  // The template in the model's directory; nothing where there is none. Throws
  // Error{corrupt_data} for damaged files and Error{unsupported} for a template that needs more of
  // Jinja than heed has.
  static std::optional<ModelChat> find(const LoadedModel& model);

  // A Jinja template; `special_tokens` are its variables bos_token, eos_token, …, and `tool_use` is
  // another template, for prompts with tools; empty: the same.
  ModelChat(std::string_view source, std::string name,
            std::map<std::string, std::string> special_tokens, std::string_view tool_use = {});

  const std::string& name() const { return name_; }

  // The tokens of the prompt. Special tokens are recognised in the template's own text, never in
  // what the prompt says; none is added that the template does not write. The role "developer" is
  // "system" for a template that does not name it. Throws Error{invalid_argument} for a prompt that
  // the template refuses, and Error{interrupted} once `stop` is set.
  std::vector<std::int32_t> encode(const ChatPrompt& prompt, const Tokenizer& tokenizer,
                                   StopFlag stop = nullptr) const;

 private:
  std::string name_;
  std::map<std::string, std::string> special_tokens_;
  struct Program {
    Program(std::string_view source, const std::string& name);
    chat::ChatTemplate chat_template;
    bool names_developer = false;
  };
  const Program& program_for(const ChatPrompt& prompt) const;

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Program> tool_program_;  // null: the same
};

// A prompt, only some parts of which may spell special tokens. The parts are encoded as one text.
class PromptWriter {
 public:
  explicit PromptWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void write_text(std::string_view text) { text_ += text; }  // special tokens are plain text
  void write_template(std::string_view text);                // special tokens become their ids

  std::vector<std::int32_t> finish() const;

 private:
  const Tokenizer& tokenizer_;
  std::string text_;
  std::vector<TextRange> template_;  // of text_; no two touch
};

}  // namespace heed
