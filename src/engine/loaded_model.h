// A model and its tokenizer, or its shape alone, found by name.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/heed.h"
#include "model/architecture.h"
#include "model/cache.h"
#include "model/transformer.h"
#include "tokenizer/reading.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct EmbeddedModel;

struct LoadedModel {
  std::string name;  // for people: of the run or directory, never a path; see model_name()
  Transformer transformer;
  std::shared_ptr<Tokenizer> tokenizer;  // null where the directory has none
  std::string embedded_name{};           // of the built-in one that it is, under any name; or empty
  CacheType cache_type = CacheType::f32;  // of keys and values, in passes of the public facade

  std::filesystem::path directory{};  // of its files; empty: the built-in one, or made in memory
  std::vector<std::int32_t> named_end_tokens{};    // see engine/special_tokens.h
  std::int64_t named_beginning = -1;               // `bos_token_id`; −1: none
  std::shared_ptr<const ReadingRecord> reading{};  // what it has read; null: nothing is known

  bool is_starter() const { return embedded_name == "starter"; }

  // The same model and tokenizer in memory, all of whose passes `editor` changes.
  LoadedModel with_editor(std::shared_ptr<Editor> editor) const;

  // The tokens that end a text: of the model, of its tokenizer, and those that its directory names.
  std::vector<std::int32_t> end_tokens() const;
  // The token before a text: as its directory names it, else its tokenizer, else the end of the
  // text before; nothing where there is none.
  std::optional<std::int32_t> beginning_of_text() const;

  // Throws Error{not_found} when there is none.
  const Tokenizer& require_tokenizer() const;

  // Ids of a text, after the tokens that its tokenizer begins texts with. Throws
  // Error{invalid_argument} for an empty text.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Ids of a part of a text, such as a word that follows another one.
  std::vector<std::int32_t> encode_part(std::string_view text) const;

  // The bytes of a token; "#17" where there is no tokenizer or it has no such token.
  std::string token_bytes(std::int32_t id) const;
  std::vector<std::string> token_bytes(std::span<const std::int32_t> ids) const;
  // The same for the tokens of a whole text: together, the text. Those that only begin it are
  // empty.
  std::vector<std::string> text_pieces(std::span<const std::int32_t> ids) const;
};

// What a model of a directory, or an embedded one, has read; null where nothing is known.
std::shared_ptr<const ReadingRecord> reading_of(const std::filesystem::path& directory);
std::shared_ptr<const ReadingRecord> reading_of(const EmbeddedModel& files);

// A directory in the Hugging Face layout, a safetensors file in one, the directory of a training
// run (its last checkpoint), a built-in name, "starter" or "english" (write ./starter for a
// directory of that name), or the name of a model that was pulled. Throws what embedded_model,
// model_path, load_transformer and load_tokenizer throw, and Error{unsupported} for a translator.
LoadedModel load_model(const std::string& name_or_path);

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

// The same, quantised as the options say. Throws the same, and Error{unsupported} for weights that
// would be rounded twice.
LoadedModel load_model(const std::string& name_or_path, const LoadOptions& options);

// The shape of a preset's name, a config.json, a model directory (or its weights), a run or the
// name of a model that was pulled. Throws Error{not_found} with the names of the presets.
StackSpecification find_gpt_config(const std::string& name_or_path);

// The same of any model: also presets of encoders and encoder-decoders, and what `heed train` has.
Architecture find_architecture(const std::string& name_or_path);

// The shape of an encoder-decoder, by the name of a preset or a directory. Throws Error{not_found}
// with the names, and Error{unsupported} for a model of one stack.
Architecture find_translator_architecture(const std::string& name_or_path);

}  // namespace heed
