#include "train/pair_data.h"

#include <algorithm>

#include "base/error.h"

namespace heed {
namespace {

// Where sequences begin that end with the token `end`.
std::vector<std::int64_t> sequence_starts(const TokenSequence& tokens, std::int32_t end) {
  constexpr std::int64_t part = std::int64_t{1} << 16;
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> read;
  for (std::int64_t begin = 0; begin < tokens.size(); begin += part) {
    read.resize(static_cast<std::size_t>(std::min(part, tokens.size() - begin)));
    tokens.read(begin, read);
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (read[i] == end) starts.push_back(begin + static_cast<std::int64_t>(i) + 1);
    }
  }
  return starts;
}

}  // namespace

PairData::PairData(const PairText& text, PairRange range, const TranslationTokenizers& tokenizers,
                   const TokenizeOptions& options)
    : text_(text),
      range_(range),
      source_(make_side(text, range, PairSide::source, *tokenizers.source, options)),
      target_(make_side(text, range, PairSide::target, *tokenizers.target, options)) {}

PairData::Side PairData::make_side(const PairText& text, PairRange range, PairSide side,
                                   const Tokenizer& tokenizer, const TokenizeOptions& options) {
  Texts lines;
  for (std::int64_t pair = range.begin; pair < range.end; ++pair) {
    lines.push_back(text.line(side, pair));
  }
  TokenData data = tokenize_lines(tokenizer, lines, options);
  std::vector<std::int64_t> starts = sequence_starts(data, *tokenizer.end_of_text());
  require(std::ssize(starts) - 1 == range.end - range.begin && starts.back() == data.size(),
          ErrorCode::corrupt_data,
          "the cached tokens of {} lines hold {} sequences: remove the cache, or give another",
          range.end - range.begin, starts.size() - 1);
  return {std::move(data), std::move(starts)};
}

std::int64_t PairData::length(PairSide side, std::int64_t pair) const {
  const auto at = static_cast<std::size_t>(pair);
  return of(side).starts[at + 1] - of(side).starts[at];
}

void PairData::read(PairSide side, std::int64_t pair, std::span<std::int32_t> out) const {
  of(side).data.read(of(side).starts[static_cast<std::size_t>(pair)], out);
}

void PairData::require_lengths(PairSide side, std::int64_t most, const char* limit) const {
  for (std::int64_t pair = 0; pair < size(); ++pair) {
    if (length(side, pair) > most) {
      fail(ErrorCode::invalid_argument,
           "{}: the {} has {} tokens with its end, but {} allows {}: shorten or remove the pair",
           text_.place(side, range_.begin + pair), pair_side_name(side), length(side, pair), limit,
           most);
    }
  }
}

}  // namespace heed
