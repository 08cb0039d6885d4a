#include "engine/convert.h"

#include "base/json.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/loaded_translator.h"

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

}  // namespace heed
