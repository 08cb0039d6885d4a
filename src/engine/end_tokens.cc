#include "engine/end_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "base/tokenizer_config.h"
#include "formats/config_file.h"

namespace heed {
namespace {

constexpr std::size_t largest_named_config = 16 << 20;  // bytes; published ones have a few million

// The member of the object in a file; null where there is no file, or no such member.
Json read_member(const std::filesystem::path& file, const char* name) {
  if (!std::filesystem::is_regular_file(file)) return {};
  const Json document = parse_json(read_text_file(file, largest_named_config), file.string());
  require(document.is_object(), ErrorCode::corrupt_data, "{}: not a JSON object", file.string());
  const Json* const member = find_json_member(document, name);
  return member == nullptr ? Json() : *member;
}

void add_ids(const std::filesystem::path& file, std::vector<std::int64_t>& ids) {
  const Json found = read_member(file, "eos_token_id");
  if (found.is_null()) return;
  for (const Json& id : found.is_array() ? found : Json::array({found})) {
    require(id.is_number_integer(), ErrorCode::corrupt_data,
            "{}: eos_token_id must be a token id or a list of them", file.string());
    ids.push_back(id.get<std::int64_t>());
  }
}

void add_named(const TokenizerConfig& config, const Tokenizer& tokenizer,
               std::vector<std::int64_t>& ids) {
  const std::optional<std::string> name = config.special_token("eos_token");
  const std::optional<std::int32_t> id = name ? tokenizer.find_added_token(*name) : std::nullopt;
  if (id) ids.push_back(*id);
}

}  // namespace

std::vector<std::int32_t> read_end_tokens(const std::filesystem::path& directory,
                                          std::int64_t vocabulary, const Tokenizer* tokenizer) {
  std::vector<std::int64_t> ids;
  add_ids(directory / config_file_name, ids);
  add_ids(directory / "generation_config.json", ids);
  if (tokenizer != nullptr) add_named(TokenizerConfig(directory), *tokenizer, ids);
  std::vector<std::int32_t> tokens;
  for (const std::int64_t id : ids) {
    if (id >= 0 && id < vocabulary) tokens.push_back(static_cast<std::int32_t>(id));
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace heed
