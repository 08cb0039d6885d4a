#include "train/first_model.h"

#include "base/error.h"
#include "model/gpt_files.h"

namespace heed {
namespace {

Gpt model_to_fine_tune(const TrainRequest& request, const TrainSettings& settings,
                       const Tokenizer& tokenizer) {
  const std::string from = request.from.string();
  Gpt gpt = load_gpt(request.from);
  const kernels::WeightFormat stored = gpt.parameters().prepared_format();
  require(stored == kernels::WeightFormat::f32, ErrorCode::unsupported,
          "'{}' holds weights in {}, which cannot be trained: take the model that it was "
          "converted from",
          from, kernels::weight_format_name(stored));
  gpt.set_dropout(settings.model.embedding_dropout, settings.model.attention_dropout,
                  settings.model.residual_dropout);
  require(gpt.config() == settings.model, ErrorCode::conflict,
          "'{}' has another shape than the settings ask for: fine-tuning keeps the shape", from);
  require(tokenizer.vocabulary_size() <= settings.model.vocabulary_size, ErrorCode::corrupt_data,
          "'{}': its tokenizer has {} tokens, its model only {}", from, tokenizer.vocabulary_size(),
          settings.model.vocabulary_size);
  return gpt;
}

}  // namespace

Gpt first_model(const TrainRequest& request, const TrainSettings& settings,
                const Tokenizer& tokenizer, bool has_checkpoint) {
  if (!has_checkpoint && !request.from.empty()) {
    return model_to_fine_tune(request, settings, tokenizer);
  }
  Gpt gpt(settings.model);
  if (!has_checkpoint) gpt.parameters().initialize(settings.seed);
  return gpt;
}

}  // namespace heed
