#include "engine/load_pair_model.h"

#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "formats/model_files.h"
#include "tokenizer/tokenizer.h"

namespace heed {
namespace {

bool has_no_tokenizer(const std::string& name_or_path) {
  return is_translator(name_or_path) && name_or_path != embedded_translator_name &&
         !holds_tokenizer(model_directory(model_path(name_or_path)));
}

}  // namespace

bool is_pair_model(const std::string& name_or_path) { return is_translator(name_or_path); }

PairModel load_pair_model(const std::string& name_or_path) {
  if (has_no_tokenizer(name_or_path)) {
    return {.name = model_name(name_or_path),
            .model = std::make_shared<const Transformer>(
                load_transformer(StacksWanted::two, model_path(name_or_path))),
            .source_tokenizer = nullptr,
            .target_tokenizer = nullptr};
  }
  LoadedTranslator loaded = load_translator(name_or_path);
  return {.name = std::move(loaded.name),
          .model = std::make_shared<const Transformer>(std::move(loaded.model)),
          .source_tokenizer = std::move(loaded.tokenizers.source),
          .target_tokenizer = std::move(loaded.tokenizers.target),
          .reading = std::move(loaded.reading)};
}

PairModel pair_model_of(const LoadedTranslator& translator) {
  return {.name = translator.name,
          .model = {&translator.model, [](const Transformer*) {}},
          .source_tokenizer = translator.tokenizers.source,
          .target_tokenizer = translator.tokenizers.target,
          .reading = translator.reading};
}

}  // namespace heed
