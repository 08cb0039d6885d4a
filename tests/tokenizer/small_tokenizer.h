// A tokenizer that the tests train for themselves.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/train_byte_pair.h"

namespace heed {

inline constexpr std::string_view small_text =
    "the cat sat on the mat. the dog's hat is on the cat's mat, isn't it?\n"
    "The fluffy blue creature roamed the verdant forest, and the cat roamed with it.\n"
    "naïve 注意力 注意力 12 12 1212   the   end<|endoftext|>the cat sat again\n";

inline std::unique_ptr<BytePairTokenizer> small_tokenizer() {
  const std::vector<std::string_view> texts = {small_text};
  return train_byte_pair_tokenizer(texts, {.vocabulary_size = 320});
}

}  // namespace heed
