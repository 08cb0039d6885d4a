#include "chat/find_chat_template.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "base/tokenizer_config.h"
#include "chat/limits.h"

namespace heed::chat {
namespace {

void read_named_templates(const Json& list, const std::string& file, FoundChatTemplate& found) {
  for (const Json& named : list) {
    const Json* const name = find_json_member(named, "name");
    const Json* const text = find_json_member(named, "template");
    require(name != nullptr && text != nullptr, ErrorCode::corrupt_data,
            "{}: chat_template must be a list of {{\"name\", \"template\"}}", file);
    const std::string source = json_string(*text, {file + ": a chat template"});
    if (*name == "default") found.source = source;
    if (*name == "tool_use") found.tool_use = source;
  }
}

}  // namespace

std::optional<FoundChatTemplate> find_chat_template(const std::filesystem::path& directory) {
  const std::filesystem::path jinja_path = directory / "chat_template.jinja";
  const TokenizerConfig config(directory);
  const std::string& file = config.source();
  FoundChatTemplate found;
  found.special_tokens = config.special_tokens();
  if (std::filesystem::is_regular_file(jinja_path)) {
    found.name = jinja_path.filename().string();
    found.source = read_text_file(jinja_path, largest_template);
    return found;
  }
  const Json* const published = config.find("chat_template");
  if (published == nullptr) return std::nullopt;
  found.name = "chat_template of tokenizer_config.json";
  if (published->is_array()) {
    read_named_templates(*published, file, found);
    if (found.source.empty()) return std::nullopt;
  } else {
    found.source = json_string(*published, {file + ": chat_template"});
  }
  return found;
}

}  // namespace heed::chat
