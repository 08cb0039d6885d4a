// WordPiece in tokenizer.json and in BERT's vocab.txt.
#pragma once

#include <memory>
#include <string_view>

#include "base/json.h"
#include "base/tokenizer_config.h"
#include "tokenizer/word_piece_tokenizer.h"

namespace heed {

// `document` is a whole tokenizer.json whose model is of type WordPiece.
std::unique_ptr<Tokenizer> read_word_piece_json(const Json& document, std::string_view source);

// A token a line, whose number, from 0 on, is its id. [PAD], [UNK], [CLS], [SEP] and [MASK] are
// special, as well as what `config` says (see config_tokens.h), of which do_lower_case [true],
// strip_accents [as do_lower_case] and tokenize_chinese_chars [true] count too.
std::unique_ptr<Tokenizer> read_word_piece_lines(std::string_view text,
                                                 const TokenizerConfig& config,
                                                 std::string_view source);

}  // namespace heed
