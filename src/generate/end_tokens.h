// The tokens that end a generated text.
#pragma once

#include <cstdint>
#include <vector>

#include "model/architecture.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// `named` ones, the model's end of text and that of its tokenizer, if there is one: each once, in
// order.
std::vector<std::int32_t> all_end_tokens(const StackSpecification& config,
                                         const Tokenizer* tokenizer,
                                         std::vector<std::int32_t> named);

}  // namespace heed
