// The tokenizer inside a GGUF file, under the keys `tokenizer.ggml.*`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/tokenizer_config.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_writer.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// Ids of WordPiece's tokens that continue a word and begin with U+2581, as tokens do in these files
// that begin a word, or are empty: heed's own key.
inline constexpr const char* gguf_continuations_key = "heed.continuations";

// Null where the file has none. Kinds are those of `tokenizer.ggml.model`: gpt2 (byte-level BPE,
// its words by `tokenizer.ggml.pre`), llama (SentencePiece's BPE with bytes for unknown
// characters), t5 (unigram) and bert (WordPiece); of any other file `tokenizer.huggingface.json` is
// read, a whole tokenizer.json. Texts are not normalised to form C, also where the model's own
// tokenizer.json does: the format does not say so, and no other program does it. Throws
// Error{corrupt_data} naming the key, the value and what was expected, and Error{unsupported} for
// kinds that heed does not know.
std::unique_ptr<Tokenizer> read_gguf_tokenizer(const GgufFile& file);

// The same of a path, from its first part.
std::unique_ptr<Tokenizer> load_gguf_tokenizer(const std::filesystem::path& path);

// What a tokenizer_config.json would say: the tokens that begin and end a text, and the chat
// template.
Json gguf_tokenizer_config(const GgufFile& file);

struct GgufTokenRoles {
  std::int64_t beginning = -1;  // −1: none
  std::int64_t end = -1;
  std::int64_t padding = -1;
};

// Appends the tokenizer's keys, with as many tokens as the model's embedding has rows. One that the
// kinds above do not describe, which other programs then cannot use, is written as
// `tokenizer.huggingface.json` alone. Throws Error{corrupt_data} for more tokens than rows.
void write_gguf_tokenizer(const Tokenizer& tokenizer, std::int64_t rows,
                          const GgufTokenRoles& roles, GgufMetadata& metadata);

}  // namespace heed
