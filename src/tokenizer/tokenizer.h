// Text to token ids and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "tokenizer/text_preparation.h"
#include "tokenizer/vocabulary.h"

namespace heed {

inline constexpr const char* tokenizer_file_name = "tokenizer.json";

struct EncodeOptions {
  bool special_tokens = true;  // strings such as <|endoftext|> become their ids; else plain text
  // If given, only those do that lie within one of these byte ranges, ascending and apart: what a
  // template wrote, say, and not what it was given. Everything else about them is as ever; white
  // space that they take along may lie outside.
  std::optional<std::span<const TextRange>> special_ranges = std::nullopt;
  // Tokens that the tokenizer's template puts before a text, such as LLaMA's <s>, and after it.
  // Models that have them expect the first at the beginning of every prompt.
  bool add_beginning = false;
  bool add_ending = false;
  // The text continues another one: a tokenizer that puts a space before a text does not.
  bool continues = false;
  StopFlag stop = nullptr;  // byte pairs of a long text: throws Error{interrupted} once it is set
};

struct DecodeOptions {
  // Write them as their strings. Else leave them out, and take away only the first space of all,
  // as the decoders of published tokenizers do.
  bool special_tokens = true;
};

// A token and the bytes of the text that it stands for, [begin, end).
struct TokenSpan {
  std::int32_t id = 0;
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};

enum class TokenizerKind {
  byte_pair,
  metaspace,
  character,
  word_piece,
  unigram,
  sentence_piece,
};

// "byte_pair", "metaspace", ...
const char* tokenizer_kind_name(TokenizerKind kind);

// A file of a directory that holds a tokenizer.
struct TokenizerFile {
  std::string name;
  std::string content;
};

// Tokens that stand around every text.
struct TextTemplate {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
};

// What all kinds of tokenizers are made of.
struct TokenizerParts {
  Vocabulary vocabulary;
  TextNormalisation normalisation;
  TextTemplate text_template;
  std::optional<std::int32_t> unknown;  // stands for characters that have no token
  bool strips_first_space = false;      // decode() leaves out the space that encode() put first
};

// Immutable once made; every method may be called from several threads at once.
//
// Tokens are byte strings. The bytes of a text's tokens, one after the other, are the text, except
// for what a published tokenizer changes in it:
//   - A space that it puts first (LLaMA 2, Mistral) stands for nothing in the text. decode() leaves
//     it out again; token_bytes() of a first token has it.
//   - It may normalise the text (NFC), and take U+2581 for a space.
//   - An added token may take along white space, and an unknown token stands for any character.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  virtual TokenizerKind kind() const = 0;

  // Large texts are encoded by all threads, where words do not depend on each other, with the same
  // result.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  // The same tokens. Their spans cover the text without gaps or overlaps; that of a token which
  // stands for nothing in the text is empty. Of tokens within a part that was normalised, the first
  // stands for all of the part. White space that has no token belongs to the token after it or, at
  // the end, to the last one; nothing covers a text without tokens.
  std::vector<TokenSpan> encode_with_offsets(std::string_view text,
                                             EncodeOptions options = {}) const;

  // Whether a text may be cut here: the tokens of the first part and then those of the second, with
  // EncodeOptions::continues, are the tokens of the text. Looks at a few bytes around `position`;
  // true only before ASCII white space that follows another kind of character.
  virtual bool may_cut(std::string_view text, std::size_t position) const;

  // The bytes of the tokens, which need not be whole characters, without a space that encode() put
  // first. Throws Error{invalid_argument} for an id outside the vocabulary, as token_bytes and
  // token_text do.
  virtual std::string decode(std::span<const std::int32_t> ids, DecodeOptions options = {}) const;
  std::string token_bytes(std::int32_t id) const;
  std::string token_text(std::int32_t id) const;  // for people: see printable() in utf8.h

  // One more than the highest id. Ids without a token have no bytes.
  std::int32_t vocabulary_size() const { return parts_.vocabulary.size(); }
  const std::vector<AddedToken>& added_tokens() const { return parts_.vocabulary.added(); }

  // The added token that is written so; for the names that tokenizer_config.json gives.
  std::optional<std::int32_t> find_added_token(std::string_view content) const;

  // What the template puts around texts.
  const TextTemplate& text_template() const { return parts_.text_template; }

  // By the usual names; the configuration of a model may name others.
  // The first token of the template, <|begin_of_text|> or <s>.
  std::optional<std::int32_t> beginning_of_text() const { return beginning_of_text_; }
  // <|endoftext|>, <|end_of_text|>, </s> or [SEP].
  std::optional<std::int32_t> end_of_text() const { return end_of_text_; }
  std::optional<std::int32_t> unknown() const { return parts_.unknown; }
  // What fills the shorter texts of a batch: <pad> or [PAD].
  std::optional<std::int32_t> padding() const { return padding_; }
  // What a decoder begins with that attends to an encoder: <s> or [CLS].
  std::optional<std::int32_t> start() const { return start_; }
  // What stands for a hidden token in masked-language-model training: <mask> or [MASK].
  std::optional<std::int32_t> mask() const { return mask_; }

  // The text of a tokenizer.json, in the format of Hugging Face's `tokenizers`. Throws
  // Error{unsupported} for a SentencePiece model, which has files of its own.
  virtual std::string to_json() const = 0;

  // The files that load_tokenizer() reads this tokenizer from: tokenizer.json, or others.
  virtual std::vector<TokenizerFile> files() const;

  // Writes them to `directory`, each whole or not at all.
  void save(const std::filesystem::path& directory) const;

  // Names what this tokenizer is, such as "byte_pair-50257-0123456789abcdef": equal for tokenizers
  // that encode alike, made from all tokens and merges. For naming cached token files.
  std::string content_key() const;

 protected:
  // Throws Error{corrupt_data} naming `source` for a template of unknown tokens.
  Tokenizer(TokenizerParts parts, std::string_view source);

  const Vocabulary& vocabulary() const { return parts_.vocabulary; }
  const TokenizerParts& parts() const { return parts_; }

  virtual std::vector<std::int32_t> encode_prepared(const PreparedText& text,
                                                    StopFlag stop) const = 0;

  // The tokens of a prepared text and what they stand for in it, in order and without overlaps.
  virtual std::vector<TokenSpan> prepared_spans(const PreparedText& text, StopFlag stop) const;

  // Bytes that the token `id`, no added one, stands for at `position` of `text`, which ends where
  // the next added token begins.
  virtual std::size_t token_size(std::string_view text, std::size_t position,
                                 std::int32_t id) const;

 private:
  PreparedText prepare(std::string_view text, EncodeOptions options) const;

  TokenizerParts parts_;
  TextPreparation preparation_;
  std::optional<std::int32_t> beginning_of_text_;
  std::optional<std::int32_t> end_of_text_;
  std::optional<std::int32_t> padding_;
  std::optional<std::int32_t> start_;
  std::optional<std::int32_t> mask_;
};

// The names of all files that tokenizers of a directory consist of.
inline constexpr std::string_view tokenizer_file_names[] = {tokenizer_file_name,
                                                            "spiece.model",
                                                            "tokenizer.model",
                                                            "source.spm",
                                                            "target.spm",
                                                            "vocab.json",
                                                            "target_vocab.json",
                                                            "vocab.txt",
                                                            "merges.txt",
                                                            "tokenizer_config.json",
                                                            "special_tokens_map.json",
                                                            "added_tokens.json"};

// Whether the directory holds files that load_tokenizer() would read.
bool holds_tokenizer(const std::filesystem::path& directory);

// Loads a tokenizer.json, a SentencePiece model (.model, .spm), or the directory that holds, in
// this order,
//   tokenizer.json
//   spiece.model (T5)
//   tokenizer.model (LLaMA 2, Mistral)
//   source.spm, target.spm and vocab.json (Marian): the tokenizer of the source
//   vocab.txt (BERT)
//   vocab.json and merges.txt (GPT-2, RoBERTa and BART)
// Of a directory, tokenizer_config.json, special_tokens_map.json and added_tokens.json count too:
// they may name more tokens and what stands around a text (see tokenizer_files.h).
// Throws Error{not_found}, Error{corrupt_data} or, when a file asks for something that would
// tokenize differently here, Error{unsupported}.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

// What a translator reads and what it writes: one tokenizer for both, but in Marian's directories.
struct TranslationTokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
};

TranslationTokenizers load_translation_tokenizers(const std::filesystem::path& path);

}  // namespace heed
