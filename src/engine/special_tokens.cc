#include "engine/special_tokens.h"

#include <algorithm>

#include "base/tokenizer_config.h"
#include "formats/config_file.h"
#include "formats/model_files.h"
#include "formats/text_ends.h"

namespace heed {
namespace {

void add_named(const TokenizerConfig& config, const Tokenizer& tokenizer,
               std::vector<std::int64_t>& ids) {
  const std::optional<std::string> name = config.special_token("eos_token");
  const std::optional<std::int32_t> id = name ? tokenizer.find_added_token(*name) : std::nullopt;
  if (id) ids.push_back(*id);
}

}  // namespace

std::vector<std::int32_t> special_tokens(const LoadedModel& model) {
  std::vector<std::int32_t> ids;
  if (model.tokenizer == nullptr) return ids;
  for (const AddedToken& token : model.tokenizer->added_tokens()) {
    if (token.special) ids.push_back(token.id);
  }
  std::ranges::sort(ids);
  return ids;
}

std::vector<std::int32_t> named_end_tokens(const ConfigFields& fields,
                                           const TokenizerConfig& config, std::int64_t vocabulary,
                                           const Tokenizer* tokenizer) {
  std::vector<std::int64_t> ids = read_end_tokens(fields, vocabulary);
  if (tokenizer != nullptr) add_named(config, *tokenizer, ids);
  std::vector<std::int32_t> tokens;
  for (const std::int64_t id : ids) {
    if (id >= 0 && id < vocabulary) tokens.push_back(static_cast<std::int32_t>(id));
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace heed
