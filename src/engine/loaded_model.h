// A model and its tokenizers, or its shape alone, found by name.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_files.h"
#include "generate/translate.h"
#include "heed/heed.h"
#include "model/architecture.h"
#include "model/cache.h"
#include "model/texts.h"
#include "model/transformer.h"
#include "tokenizer/reading.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct EmbeddedModel;

// A model of one text, or of a source and a target. One text is a target.
struct LoadedModel {
  std::string name;  // for people: of the run or directory, never a path; see model_name()
  Transformer transformer;
  std::shared_ptr<const Tokenizer> tokenizer{};         // null where the directory has none
  std::shared_ptr<const Tokenizer> source_tokenizer{};  // null of a model of one text, too
  std::string embedded_name{};  // of the built-in one that it is, under any name; or empty
  CacheType cache_type = CacheType::f32;  // of keys and values, in passes of the public facade

  std::filesystem::path directory{};  // of its files; empty: the built-in one, or made in memory
  std::vector<std::int32_t> named_end_tokens{};    // see engine/special_tokens.h
  std::int64_t named_beginning = -1;               // `bos_token_id`; −1: none
  std::shared_ptr<const ReadingRecord> reading{};  // what it has read; null: nothing is known

  const Architecture& architecture() const { return transformer.architecture(); }
  bool is_translator() const { return architecture().is_encoder_decoder(); }
  // One stack, in which every token attends to all: it predicts no next one.
  bool is_encoder() const {
    return !is_translator() && architecture().encoder().role == StackRole::encoder;
  }
  bool is_starter() const { return embedded_name == "starter"; }
  // The stack that reads a side.
  const StackSpecification& stack(PairSide side) const;

  // The same model and tokenizers in memory, all of whose passes `editor` changes.
  LoadedModel with_editor(std::shared_ptr<Editor> editor) const;

  // The tokens that end a text: of the model, of its tokenizer, and those that its directory names.
  std::vector<std::int32_t> end_tokens() const;
  // The token before a text: as its directory names it, else its tokenizer, else the end of the
  // text before; nothing where there is none.
  std::optional<std::int32_t> beginning_of_text() const;

  const Tokenizer* tokenizer_of(PairSide side) const {  // null: tokens have no text
    return (side == PairSide::source ? source_tokenizer : tokenizer).get();
  }
  TranslationTokenizers tokenizers() const { return {source_tokenizer, tokenizer}; }
  // Throws Error{not_found} when there is none.
  const Tokenizer& require_tokenizer(PairSide side = PairSide::target) const;

  // Ids of the text of a model of one text, after the tokens that its tokenizer begins texts with.
  // Throws Error{invalid_argument} for an empty text.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // A source with the tokens that its tokenizer puts around texts; messages call it `what`, such as
  // "line 3". Throws what heed::encode_source does.
  std::vector<std::int32_t> encode_source(std::string_view text,
                                          std::string_view what = "the source") const;
  // A target as the decoder reads it: its start, the tokens that its tokenizer begins texts with,
  // and the text, without an end. Throws Error{invalid_argument} for an empty text.
  std::vector<std::int32_t> encode_target(std::string_view text) const;
  // Ids of a part of a text, such as a word that follows another one.
  std::vector<std::int32_t> encode_part(std::string_view text,
                                        PairSide side = PairSide::target) const;

  // The bytes of a token; "#17" where there is no tokenizer or it has no such token, and where a
  // translator's has no bytes.
  std::string token_bytes(std::int32_t id, PairSide side = PairSide::target) const;
  std::vector<std::string> token_bytes(std::span<const std::int32_t> ids,
                                       PairSide side = PairSide::target) const;
  // The same for the tokens of a whole text: together, the text. Those that only begin it are
  // empty.
  std::vector<std::string> text_pieces(std::span<const std::int32_t> ids) const;
  // The text of a translation, without special tokens; token ids where there is no tokenizer.
  std::string target_text(std::span<const std::int32_t> tokens) const;

  // Searches in caches of cache_type, whatever the options say.
  std::vector<std::vector<TokenHypothesis>> translate(const SourceTokens& sources,
                                                      BeamOptions options) const;
};

// What a model reads.
struct ModelTexts {
  Texts tokens;
  bool is_translation = false;  // the target is the model's own
};
// A source with its greedy translation.
ModelTexts translated_pair(const LoadedModel& translator, std::vector<std::int32_t> source,
                           StopFlag stop = nullptr);

// What a model of a directory, or an embedded one, has read; null where nothing is known.
std::shared_ptr<const ReadingRecord> reading_of(const std::filesystem::path& directory);
std::shared_ptr<const ReadingRecord> reading_of(const EmbeddedModel& files);

// A directory in the Hugging Face layout, a safetensors file in one, the directory of a training
// run (its last checkpoint), a built-in name, "starter", "english" or "translator" (write ./starter
// for a directory of that name), or the name of a model that was pulled. Throws what
// embedded_model, model_path, load_transformer and load_tokenizer throw, and Error{unsupported} for
// weights that would be rounded twice and for a model of another number of stacks than is wanted.
LoadedModel load_model(const std::string& name_or_path, const LoadOptions& options = {},
                       StacksWanted stacks = StacksWanted::one);

// Throws Error{unsupported} where a model has another number of stacks than is wanted; `has` is one
// or two.
void require_stacks(StacksWanted wanted, StacksWanted has, const std::string& name);

// Whether a model without tokenizers, which takes and gives token ids alone, is refused.
enum class TokenizerNeed { required, optional };

// The same of two stacks (Marian, BART, T5, heed's own). Weights in f32 are packed, if that takes
// at most a quarter of the free memory.
LoadedModel load_translator(const std::string& name_or_path, const LoadOptions& options = {},
                            TokenizerNeed need = TokenizerNeed::required);

// Whether `name_or_path` is that of a translator. Throws what model_path throws.
bool is_translator(const std::string& name_or_path);

// The same for its tokenizer alone. Also takes a tokenizer.json itself, and the built-in name
// "translator".
std::unique_ptr<Tokenizer> load_model_tokenizer(const std::string& name_or_path);

// Resolves a path to a model: RUN/last if the path is a run, the path itself if it exists,
// otherwise the directory of the model that was pulled by this name. Throws Error{not_found} where
// there is none but the name may be pulled; other paths that do not exist are returned as they are.
std::filesystem::path model_path(const std::filesystem::path& path);

// The display name of a model: the name of its run or directory, and for a run's other checkpoints
// their name after it: "shakespeare" is the last one, "shakespeare@best" and "shakespeare@00000250"
// others. Of a pulled model, it is the last part of its name on the hub.
std::string model_name(const std::string& name_or_path);

// Packs the weights (Parameters::pack) for many prompts, if that takes at most a quarter of the
// free memory.
void pack_for_prompts(LoadedModel& model);

// "f32", "bf16", "int8" or "int4"; empty: as stored. Throws Error{invalid_argument} for another.
WeightType parse_weight_type(std::string_view name);
// "f32", "bf16" or "int8". Throws Error{invalid_argument} for another.
KeyValueType parse_key_value_type(std::string_view name);

// Throws Error{invalid_argument} for a number that is none of the enumeration.
CacheType cache_type_of(KeyValueType type);

// Quantises the matrices of the model `name`, where they are not of that type already. Throws
// Error{unsupported} for weights that would be rounded twice.
void prepare_weights(Parameters& parameters, WeightType type, const std::string& name);

// Throws Error{unsupported} where the model `name` is stored rounded, and would be rounded again.
void require_rounded_once(const Parameters& parameters, kernels::WeightFormat wanted,
                          const std::string& name);

// The shape of a preset's name, a config.json, a model directory (or its weights), a run or the
// name of a model that was pulled. Throws Error{not_found} with the names of the presets.
StackSpecification find_stack_config(const std::string& name_or_path);

// The same of any model: also presets of encoders and encoder-decoders, and what `heed train` has.
Architecture find_architecture(const std::string& name_or_path);

// The shape of an encoder-decoder, by the name of a preset or a directory. Throws Error{not_found}
// with the names, and Error{unsupported} for a model of one stack.
Architecture find_translator_architecture(const std::string& name_or_path);

}  // namespace heed
