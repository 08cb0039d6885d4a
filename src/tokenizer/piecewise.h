// Encodes a prepared text in pieces, on all threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "tokenizer/text_preparation.h"
#include "tokenizer/word_cache.h"

namespace heed {

struct PieceEncoder {
  // Whether the words before and behind a position of the text do not depend on each other.
  std::function<bool(std::string_view text, std::size_t position)> is_boundary;
  // Appends the tokens of a part of the text that begins and ends at boundaries or added tokens.
  std::function<void(std::string_view part, WordCache& cache, std::vector<std::int32_t>& tokens)>
      append_tokens;
};

// The tokens of the text and its added tokens, whatever the number of threads.
std::vector<std::int32_t> encode_in_pieces(const PreparedText& prepared,
                                           const PieceEncoder& encoder, WordCachePool& caches,
                                           StopFlag stop);

// Appends the tokens of a word, not empty, from the cache or, where it has none, those that
// `append` appends.
template <class Append>
[[gnu::always_inline]] inline void append_cached(std::string_view word, WordCache& cache,
                                                 std::vector<std::int32_t>& tokens,
                                                 Append&& append) {
  if (word.size() > WordKey::longest) {
    append(word);
    return;
  }
  const WordKey key(word);
  const auto known = cache.find(key);
  if (known.size() == 1) {
    tokens.push_back(known[0]);
  } else if (!known.empty()) {
    tokens.insert(tokens.end(), known.begin(), known.end());
  } else {
    const std::size_t before = tokens.size();
    append(word);
    cache.insert(key, std::span(tokens).subspan(before));
  }
}

}  // namespace heed
