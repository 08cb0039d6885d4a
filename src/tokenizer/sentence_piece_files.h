// Tokenizers of published encoder-decoders that come with SentencePiece models: T5 and Marian.
#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/tokenizer.h"

namespace heed {

// A model alone (.model, .spm): its own ids, and nothing around a text.
std::unique_ptr<Tokenizer> load_sentence_piece_file(const std::filesystem::path& path);

// T5's spiece.model, with tokenizer_config.json and special_tokens_map.json if they are there: </s>
// behind a text, and the tokens <extra_id_0>, <extra_id_1>, ... behind those of the model.
std::unique_ptr<Tokenizer> load_t5(const std::filesystem::path& directory);

// OPUS-MT's source.spm, target.spm, vocab.json and, where languages have vocabularies of their own,
// target_vocab.json: </s> behind a text; tokens >>language<< are found as a whole.
struct MarianTokenizers {
  std::unique_ptr<Tokenizer> source;
  std::unique_ptr<Tokenizer> target;
};
MarianTokenizers load_marian(const std::filesystem::path& directory);

}  // namespace heed
