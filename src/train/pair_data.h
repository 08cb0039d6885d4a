// Pairs as tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/pair_text.h"
#include "train/token_data.h"

namespace heed {

// Pairs [begin, end) of a text.
struct PairRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The tokens of each side, each sequence with the token that ends it: from the cache if they are
// there (tokenize_lines). Tokens stay in their files; the lengths of all sequences are in memory.
class PairData {
 public:
  // Throws what tokenize_lines throws.
  PairData(const PairText& text, PairRange range, const TranslationTokenizers& tokenizers,
           const TokenizeOptions& options);

  std::int64_t size() const { return std::ssize(source_.starts) - 1; }
  // Tokens of a side, its end included.
  std::int64_t length(PairSide side, std::int64_t pair) const;
  std::int64_t tokens(PairSide side) const { return of(side).starts.back(); }
  // `out` has length() tokens.
  void read(PairSide side, std::int64_t pair, std::span<std::int32_t> out) const;

  // Names these tokens.
  std::string key() const { return source_.data.key() + "-" + target_.data.key(); }

  // Throws Error{invalid_argument} naming file and line of the first sequence with more tokens than
  // `most`; `limit` says what allows so many ("the context of the encoder").
  void require_lengths(PairSide side, std::int64_t most, const char* limit) const;

 private:
  struct Side {
    TokenData data;
    std::vector<std::int64_t> starts;  // first token of each sequence, and the end
  };
  static Side make_side(const PairText& text, PairRange range, PairSide side,
                        const Tokenizer& tokenizer, const TokenizeOptions& options);
  const Side& of(PairSide side) const { return side == PairSide::source ? source_ : target_; }

  const PairText& text_;
  PairRange range_;
  Side source_;
  Side target_;
};

}  // namespace heed
