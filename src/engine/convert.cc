#include "engine/convert.h"

#include "base/json.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/loaded_translator.h"
#include "engine/model_chat.h"

namespace heed {
namespace {

SourceFiles files_beside_weights(const std::string& model) {
  const auto embedded = embedded_model(model);
  if (!embedded) return read_source_files(model_path(model));
  SourceFiles files({{tokenizer_file_name, std::string(embedded->tokenizer)},
                     {reading_file_name, std::string(embedded->reading)}});
  files.config = parse_ordered_config(embedded->config, model + ": " + config_file_name);
  return files;
}

}  // namespace

// Loaded as it is stored: saving rounds it, and says which tensor it cannot round.
void convert_model(const std::string& model, const std::filesystem::path& out, const SavedAs& as) {
  const SourceFiles files = files_beside_weights(model);
  if (is_translator(model)) {
    const LoadedTranslator translator = load_translator(model, {}, TokenizerNeed::optional);
    require_rounded_once(translator.model.parameters(), as.format, model);
    return save_transformer(translator.model, out, files, as);
  }
  const LoadedModel loaded = load_model(model);
  require_rounded_once(loaded.transformer.parameters(), as.format, model);
  save_transformer(loaded.transformer, out, files, as);
}

void convert_to_gguf(const std::string& model, const std::filesystem::path& out,
                     GgufWeights weights) {
  const SourceFiles files = files_beside_weights(model);
  const auto save = [&](const Transformer& transformer, const GgufContent& content) {
    const kernels::WeightFormat stored = transformer.parameters().prepared_format();
    require(stored == kernels::WeightFormat::f32 || weights == GgufWeights::f32,
            ErrorCode::unsupported,
            "'{}' is stored in {} and would be rounded twice: use the model that it was converted "
            "from, or --dtype f32",
            model, kernels::weight_format_name(stored));
    save_gguf(transformer, out, files, content, weights);
  };
  if (is_translator(model)) {
    const LoadedTranslator translator = load_translator(model, {}, TokenizerNeed::optional);
    return save(translator.model,
                {.name = translator.name, .tokenizer = translator.tokenizers.source.get()});
  }
  const LoadedModel loaded = load_model(model);
  const auto chat = find_chat_template(loaded);
  save(loaded.transformer, {.name = loaded.name,
                            .tokenizer = loaded.tokenizer.get(),
                            .chat_template = chat ? chat->source : ""});
}

}  // namespace heed
