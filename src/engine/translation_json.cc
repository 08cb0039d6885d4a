#include "engine/translation_json.h"

#include <fmt/format.h>

#include "base/json.h"
#include "engine/token_json.h"

namespace heed {

OrderedJson hypothesis_json(const LoadedTranslator& translator, const TokenHypothesis& hypothesis) {
  const Tokenizer& target = *translator.tokenizers.target;
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : hypothesis.tokens) {
    const bool is_known = id < target.vocabulary_size();
    tokens.push_back(token_json(id, is_known ? target.token_bytes(id) : fmt::format("#{}", id)));
  }
  return {{"text", translator.decode(hypothesis.tokens)},
          {"score", hypothesis.score},
          {"log_probability", hypothesis.log_probability},
          {"finished", hypothesis.finished},
          {"tokens", std::move(tokens)}};
}

}  // namespace heed
