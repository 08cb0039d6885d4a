// Tokenizers that say which part of a text each token stands for, since the bytes of their tokens
// are not those of the text: WordPiece drops white space, Unigram and SentencePiece add some.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace heed {

class PartTokenizer : public Tokenizer {
 public:
  // Parts of a text depend on each other, for all that is known here.
  bool may_cut(std::string_view text, std::size_t position) const override;

 protected:
  using Tokenizer::Tokenizer;

  // Appends the tokens of a part of the prepared text between added tokens, with spans in the part,
  // in order and without overlaps. `begins_text` says that the part is the first.
  virtual void append_part(std::string_view part, bool begins_text,
                           std::vector<TokenSpan>& spans) const = 0;

  std::vector<std::int32_t> encode_prepared(const PreparedText& text, StopFlag stop) const override;
  std::vector<TokenSpan> prepared_spans(const PreparedText& text, StopFlag stop) const override;
};

}  // namespace heed
