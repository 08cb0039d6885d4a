#include "engine/convert.h"

#include "base/json.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
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
  const LoadedModel loaded = load_model(model, {}, StacksWanted::any);
  require_rounded_once(loaded.transformer.parameters(), as.format, model);
  save_transformer(loaded.transformer, out, files, as);
}

std::string convert_to_gguf(const std::string& model, const std::filesystem::path& out,
                            GgufWeights weights) {
  const SourceFiles files = files_beside_weights(model);
  const LoadedModel loaded = load_model(model, {}, StacksWanted::any);
  const kernels::WeightFormat stored = loaded.transformer.parameters().prepared_format();
  require(stored == kernels::WeightFormat::f32 || weights == GgufWeights::f32,
          ErrorCode::unsupported,
          "'{}' is stored in {} and would be rounded twice: use the model that it was converted "
          "from, or --dtype f32",
          model, kernels::weight_format_name(stored));
  const bool chats = !loaded.is_translator();
  const auto chat = chats ? find_chat_template(loaded) : std::nullopt;
  save_gguf(loaded.transformer, out, files,
            {.name = loaded.name,
             .tokenizer = loaded.tokenizer_of(chats ? PairSide::target : PairSide::source),
             .chat_template = chat ? chat->source : ""},
            weights);
  const bool has_head = loaded.transformer.architecture().decoder().prediction_head;
  return has_head ? "the head of the masked language model, which GGUF files of BERT do not hold: "
                    "the file gives hidden states and attention, and no logits"
                  : "";
}

}  // namespace heed
