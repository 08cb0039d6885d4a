// A translator and its tokenizers, found by name.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generate/translate.h"
#include "heed/heed.h"
#include "microscope/attention/text_words.h"
#include "microscope/intervene/pair_effects.h"
#include "tokenizer/reading.h"

namespace heed {

struct LoadedTranslator {
  std::string name;  // for people: of the run or directory, never a path
  Transformer model;
  TranslationTokenizers tokenizers;
  CacheType cache_type = CacheType::f32;           // of keys and values
  bool is_embedded = false;                        // the one that heed carries
  std::shared_ptr<const ReadingRecord> reading{};  // what it has read; null: nothing is known

  // Tokens of a source; messages call it `what`, such as "line 3". Throws what encode_source does.
  // Without tokenizers, text throws Error{not_found}.
  std::vector<std::int32_t> encode(std::string_view text, std::string_view what) const;
  std::string decode(std::span<const std::int32_t> target) const;
  const Tokenizer& source_tokenizer() const;
  const Tokenizer& target_tokenizer() const;

  const Architecture& architecture() const { return model.architecture(); }
  const Tokenizer* tokenizer(PairSide side) const {  // null: tokens have no text
    return (side == PairSide::source ? tokenizers.source : tokenizers.target).get();
  }

  // A source with the tokens that its tokenizer puts around texts. Throws Error{invalid_argument}
  // for an empty text, and Error{not_found} where there is no tokenizer.
  std::vector<std::int32_t> encode_source(std::string_view text) const;
  // A target as the decoder reads it: its start, the tokens that its tokenizer begins texts with,
  // and the text, without an end.
  std::vector<std::int32_t> encode_target(std::string_view text) const;

  // A part of a text, without any tokens around it.
  std::vector<std::int32_t> encode_part(PairSide side, std::string_view text) const;

  // The text of a translation, without special tokens.
  std::string target_text(std::span<const std::int32_t> tokens) const;

  // The bytes of each token; "#17" where there is no tokenizer or it has no such token.
  std::vector<std::string> token_bytes(PairSide side, std::span<const std::int32_t> ids) const;
  // The words of a text and the tokens between them, as units_of(); each special token by itself.
  std::vector<TextWord> words(PairSide side, std::span<const std::int32_t> ids) const;

  // Searches in caches of cache_type, whatever the options say.
  std::vector<std::vector<TokenHypothesis>> translate(const SourceTokens& sources,
                                                      BeamOptions options) const;
};

// The target is the greedy translation of the source where `target` is empty.
struct PairTexts {
  Texts tokens;
  bool is_translation = false;
};
PairTexts translated_pair(const LoadedTranslator& model, std::vector<std::int32_t> source,
                          StopFlag stop = nullptr);

// Whether `name_or_path` is that of a translator. Throws what model_path throws.
bool is_translator(const std::string& name_or_path);

// Whether a model without tokenizers, which takes and gives token ids alone, is refused.
enum class TokenizerNeed { required, optional };

// A directory of an encoder-decoder (Marian, BART, T5, heed's own) with its tokenizers, the
// directory of a run on pairs, the built-in name "translator", or the name of a model that was
// pulled. Weights in f32 are packed, if that takes at most a quarter of the free memory. Throws
// what load_model throws, and Error{unsupported} for a model that has no encoder.
LoadedTranslator load_translator(const std::string& name_or_path, const LoadOptions& options = {},
                                 TokenizerNeed need = TokenizerNeed::required);

// What becomes of a source that is longer than the encoder reads.
enum class LongTexts {
  refuse,  // an error that names the text
  crop,    // what does not fit is left out: from a word on where that is possible
  split,   // parts that fit: at ends of sentences, or else at spaces, or else anywhere
};

// "refuse", "crop" and "split".
std::vector<std::string> long_texts_names();
// Throws Error{invalid_argument} with the names that there are.
LongTexts parse_long_texts(std::string_view name);

// The parts of a text that are to be translated: the text itself where it fits or is to be refused,
// its beginning, or all of it in order, without the spaces between parts.
std::vector<std::string> fitting_parts(const LoadedTranslator& translator, std::string_view text,
                                       LongTexts treatment);

}  // namespace heed
