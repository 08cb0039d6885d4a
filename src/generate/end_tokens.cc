#include "generate/end_tokens.h"

#include <algorithm>

namespace heed {

std::vector<std::int32_t> all_end_tokens(const StackSpecification& config,
                                         const Tokenizer* tokenizer,
                                         std::vector<std::int32_t> named) {
  if (config.end_of_text >= 0) named.push_back(static_cast<std::int32_t>(config.end_of_text));
  if (tokenizer != nullptr && tokenizer->end_of_text()) named.push_back(*tokenizer->end_of_text());
  std::ranges::sort(named);
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

}  // namespace heed
