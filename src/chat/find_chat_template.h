// The chat template that a model directory holds.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace heed::chat {

struct FoundChatTemplate {
  std::string source;
  std::string name;      // the file's, for messages
  std::string tool_use;  // the template named "tool_use", for requests with tools; may be empty
  std::map<std::string, std::string> special_tokens;  // bos_token, eos_token, …: see ChatInput
};

// Reads chat_template.jinja, else "chat_template" of tokenizer_config.json (a string, or a list of
// {"name", "template"} with one named "default"); nothing if there is neither. Throws
// Error{corrupt_data} for files that are not as they should be.
std::optional<FoundChatTemplate> find_chat_template(const std::filesystem::path& directory);

}  // namespace heed::chat
