// The values of `tokenizer.ggml.pre` and `tokenizer.ggml.token_type`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/words.h"

namespace heed {

enum class GgufTokenType : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,  // matched as a special token alone
  user_defined = 4,
  unused = 5,
  byte = 6,  // "<0x0A>"
};

struct GgufPreTokenizer {
  std::string_view name;
  WordPattern pattern = WordPattern::gpt2;
  bool ignores_merges = false;  // a word that is a token is that token
  bool adds_beginning = false;  // where no key says so
};

// Null for one that heed does not know.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);
// The first of the same words and treatment of merges; null where there is none.
const GgufPreTokenizer* find_gguf_pre_tokenizer_like(const GgufPreTokenizer& wanted);
std::string gguf_pre_tokenizer_names();  // for messages

}  // namespace heed
