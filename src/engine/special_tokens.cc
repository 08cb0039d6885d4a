#include "engine/special_tokens.h"

#include <algorithm>

namespace heed {

std::vector<std::int32_t> special_tokens(const LoadedModel& model) {
  std::vector<std::int32_t> ids;
  if (model.tokenizer == nullptr) return ids;
  for (const AddedToken& token : model.tokenizer->added_tokens()) {
    if (token.special) ids.push_back(token.id);
  }
  std::ranges::sort(ids);
  return ids;
}

}  // namespace heed
