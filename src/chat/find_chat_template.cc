#include "chat/find_chat_template.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "chat/limits.h"

namespace heed::chat {
namespace {

constexpr std::size_t largest_config = 16 << 20;  // bytes; published ones have up to a few million

// "<s>", or {"content": "<s>", …}; nothing for null.
std::optional<std::string> token_text(const Json& token, const JsonLabel& label) {
  if (token.is_null()) return std::nullopt;
  if (!token.is_object()) return json_string(token, label);
  const Json* const content = find_json_member(token, "content");
  require(content != nullptr, label.code, "{} has no \"content\"", label.text);
  return json_string(*content, label);
}

std::map<std::string, std::string> read_special_tokens(const Json& config,
                                                       const std::string& file) {
  std::map<std::string, std::string> tokens;
  for (const char* const name : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token",
                                 "cls_token", "mask_token"}) {
    const Json* const token = find_json_member(config, name);
    if (token == nullptr) continue;
    if (auto text = token_text(*token, {fmt::format("{}: {}", file, name)})) {
      tokens.emplace(name, std::move(*text));
    }
  }
  return tokens;
}

void read_named_templates(const Json& list, const std::string& file, FoundChatTemplate& found) {
  for (const Json& named : list) {
    const Json* const name = find_json_member(named, "name");
    const Json* const text = find_json_member(named, "template");
    require(name != nullptr && text != nullptr, ErrorCode::corrupt_data,
            "{}: chat_template must be a list of {{\"name\", \"template\"}}", file);
    const std::string& source = json_string(*text, {file + ": a chat template"});
    if (*name == "default") found.source = source;
    if (*name == "tool_use") found.tool_use = source;
  }
}

}  // namespace

std::optional<FoundChatTemplate> find_chat_template(const std::filesystem::path& directory) {
  const std::filesystem::path config_path = directory / "tokenizer_config.json";
  const std::filesystem::path jinja_path = directory / "chat_template.jinja";
  FoundChatTemplate found;
  Json config = Json::object();
  const std::string file = config_path.string();
  if (std::filesystem::is_regular_file(config_path)) {
    config = parse_json(read_text_file(config_path, largest_config), file);
    require(config.is_object(), ErrorCode::corrupt_data, "{}: not a JSON object", file);
    found.special_tokens = read_special_tokens(config, file);
  }
  if (std::filesystem::is_regular_file(jinja_path)) {
    found.name = jinja_path.filename().string();
    found.source = read_text_file(jinja_path, largest_template);
    return found;
  }
  const Json* const published = find_json_member(config, "chat_template");
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
