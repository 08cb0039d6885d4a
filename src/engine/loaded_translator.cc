#include "engine/loaded_translator.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/embedded_models.h"
#include "engine/load_options.h"
#include "engine/loaded_model.h"
#include "formats/model_files.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

void pack_translator(Parameters& parameters, const Architecture& architecture) {
  const std::optional<std::int64_t> available = available_memory();
  std::int64_t bytes = 0;
  for (const StackSpecification& stack : architecture.stacks) {
    bytes += Parameters::packed_bytes(stack);
  }
  if (!available || bytes <= *available / 4) parameters.pack();
}

LoadedTranslator built_in_translator() {
  const EmbeddedModel files = *embedded_model(embedded_translator_name);
  const std::shared_ptr<const Tokenizer> tokenizer =
      parse_tokenizer_json(files.tokenizer, "the built-in translator's tokenizer.json");
  return {.name = std::string(embedded_translator_name),
          .model = load_transformer(StacksWanted::two, ModelBytes{"the built-in translator",
                                                                  files.config, files.weights}),
          .tokenizers = {tokenizer, tokenizer},
          .is_embedded = true};
}

[[noreturn]] void fail_without_encoder(const std::string& name) {
  fail(ErrorCode::unsupported,
       "'{}' has no encoder, so it does not translate; `heed generate -m {}` continues a text",
       name, name);
}

LoadedTranslator translator_in(const std::string& name_or_path, TokenizerNeed need) {
  if (name_or_path == starter_name) fail_without_encoder(name_or_path);
  const std::filesystem::path path = model_path(name_or_path);
  const std::filesystem::path directory = model_directory(path);
  require(std::filesystem::exists(directory / config_file_name), ErrorCode::not_found,
          "'{}' is not a model: it has no {}", path.string(), config_file_name);
  if (!is_encoder_decoder_directory(path)) fail_without_encoder(name_or_path);
  const bool leaves_out = need == TokenizerNeed::optional && !holds_tokenizer(directory);
  return {
      .name = model_name(name_or_path),
      .model = load_transformer(StacksWanted::two, path),
      .tokenizers = leaves_out ? TranslationTokenizers{} : load_translation_tokenizers(directory)};
}

}  // namespace

const Tokenizer& LoadedTranslator::source_tokenizer() const {
  require(tokenizers.source != nullptr, ErrorCode::not_found,
          "the model '{}' has no tokenizer: give token ids instead of a text", name);
  return *tokenizers.source;
}

const Tokenizer& LoadedTranslator::target_tokenizer() const {
  require(tokenizers.target != nullptr, ErrorCode::not_found,
          "the model '{}' has no tokenizer: it gives token ids, not a text", name);
  return *tokenizers.target;
}

std::vector<std::int32_t> LoadedTranslator::encode(std::string_view text,
                                                   std::string_view what) const {
  return encode_source(model.architecture(), source_tokenizer(), text, what);
}

std::string LoadedTranslator::decode(std::span<const std::int32_t> target) const {
  return decode_target(target_tokenizer(), target);
}

std::vector<std::vector<TokenHypothesis>> LoadedTranslator::translate(const SourceTokens& sources,
                                                                      BeamOptions options) const {
  options.cache_type = cache_type;
  return translate_tokens(model, target_tokenizer(), sources, std::move(options));
}

bool is_translator(const std::string& name_or_path) {
  if (name_or_path == starter_name) return false;
  return name_or_path == embedded_translator_name ||
         is_encoder_decoder_directory(model_path(name_or_path));
}

LoadedTranslator load_translator(const std::string& name_or_path, const LoadOptions& options,
                                 TokenizerNeed need) {
  LoadedTranslator translator = name_or_path == embedded_translator_name
                                    ? built_in_translator()
                                    : translator_in(name_or_path, need);
  translator.cache_type = cache_type_of(options.cache);
  prepare_weights(translator.model.parameters(), options.weights, name_or_path);
  pack_translator(translator.model.parameters(), translator.model.architecture());
  return translator;
}

}  // namespace heed
