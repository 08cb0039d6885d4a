#include "train/first_model.h"

#include "base/error.h"
#include "train/writable_shape.h"

namespace heed {

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
  require_writable_dropout({.stacks = {gpt.config()}}, request.from);
  require(gpt.config() == settings.model, ErrorCode::conflict,
          "'{}' has another shape than the settings ask for: fine-tuning keeps the shape", from);
  require(tokenizer.vocabulary_size() <= settings.model.vocabulary_size, ErrorCode::corrupt_data,
          "'{}': its tokenizer has {} tokens, its model only {}", from, tokenizer.vocabulary_size(),
          settings.model.vocabulary_size);
  return gpt;
}

void set_fine_tuned_model(const std::filesystem::path& from, TrainSettings& settings) {
  if (is_encoder_decoder_directory(from)) {
    const Architecture architecture = read_architecture(from);
    settings.task = Task::pairs;
    settings.model = architecture.decoder();
    settings.model.block.cross_attention.reset();
    settings.encoder_layers = architecture.encoder().layers;
  } else {
    settings.model = read_architecture(from).decoder();
    const bool is_encoder = settings.model.role == StackRole::encoder;
    settings.task = is_encoder ? Task::masked : Task::language_model;
  }
  settings.model.embedding_dropout = settings.model.attention_dropout =
      settings.model.residual_dropout = 0;
}

std::vector<CompanionFile> tokenizer_companions(const Tokenizer& tokenizer) {
  std::vector<CompanionFile> companions;
  for (TokenizerFile& file : tokenizer.files()) {
    companions.push_back({std::move(file.name), std::move(file.content)});
  }
  return companions;
}

SourceFiles run_files(const std::filesystem::path& of, const Tokenizer& tokenizer) {
  return of.empty() ? SourceFiles(tokenizer_companions(tokenizer)) : read_source_files(of);
}

}  // namespace heed
