#include "train/first_model.h"

#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/config_file.h"
#include "model/input_checks.h"
#include "train/settings.h"

namespace heed {
namespace {

// A translator of the same size that can be written.
TrainSettings plain_translator(const StackSpecification& shape) {
  TrainSettings plain = train_preset("translator-tiny");
  StackSpecification& model = plain.model;
  model.vocabulary_size = shape.vocabulary_size;
  model.channels = shape.channels;
  AttentionSpecification& attention = model.block.attention;
  attention.query_heads = attention.key_value_heads = shape.heads();
  attention.head_size = shape.channels / shape.heads();
  model.embedding_scale = std::sqrt(static_cast<float>(shape.channels));
  return plain;
}

// The settings each of which alone makes a plain translator one that cannot be written.
std::vector<std::string> unwritable_settings(const TrainSettings& settings) {
  const TrainSettings plain = plain_translator(settings.model);
  std::vector<std::string> found;
  for (const Setting& setting : all_settings()) {
    const Json value = setting.write(settings);
    if (value == setting.write(plain)) continue;
    TrainSettings changed = plain;
    setting.read(changed, value);
    if (!can_be_written(pair_architecture(changed))) {
      found.push_back(fmt::format("{}={}", setting.name,
                                  value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
  return found;
}

}  // namespace

Transformer model_to_fine_tune(const TrainRequest& request, const TrainSettings& settings,
                               const Tokenizer& tokenizer) {
  const std::string from = request.from.string();
  Transformer transformer = load_transformer(StacksWanted::one, request.from);
  // Blocks are restored, to be trained in f32; what was rounded in a way of heed's own is not.
  if (transformer.parameters().are_in_blocks()) {
    transformer.parameters().prepare(kernels::WeightFormat::f32);
  }
  const kernels::WeightFormat stored = transformer.parameters().prepared_format();
  require(stored == kernels::WeightFormat::f32, ErrorCode::unsupported,
          "'{}' holds weights in {}, which cannot be trained: take the model that it was "
          "converted from",
          from, kernels::weight_format_name(stored));
  transformer.set_dropout(settings.model.embedding_dropout, settings.model.attention_dropout,
                          settings.model.residual_dropout);
  require_writable_dropout({.stacks = {transformer.specification()}}, request.from);
  require(transformer.specification() == settings.model, ErrorCode::conflict,
          "'{}' has another shape than the settings ask for: fine-tuning keeps the shape", from);
  require(tokenizer.vocabulary_size() <= settings.model.vocabulary_size, ErrorCode::corrupt_data,
          "'{}': its tokenizer has {} tokens, its model only {}", from, tokenizer.vocabulary_size(),
          settings.model.vocabulary_size);
  return transformer;
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
    require_unembedding(settings.model, fmt::format("training from '{}'", from.string()));
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

void require_writable_shape(const TrainSettings& settings) {
  if (settings.task != Task::pairs) {
    require(can_be_written({.stacks = {settings.model}}), ErrorCode::unsupported,
            "no file format can hold a model of this shape, so that it could not be saved: change "
            "the settings of its shape");
    return;
  }
  if (can_be_written(pair_architecture(settings))) return;
  const std::vector<std::string> found = unwritable_settings(settings);
  fail(ErrorCode::unsupported,
       "no file format can hold a translator of this shape, so that it could not be saved: change "
       "{}",
       found.empty() ? "the settings of its shape" : fmt::format("{}", fmt::join(found, ", ")));
}

void require_writable_dropout(const Architecture& architecture, const std::filesystem::path& from) {
  const StackSpecification& stack = architecture.decoder();
  require(can_be_written(architecture), ErrorCode::unsupported,
          "the format of '{}' cannot hold these rates of dropout (embedding {}, attention {}, "
          "residual {}), so that the model could not be saved: make them equal, or 0",
          from.string(), stack.embedding_dropout, stack.attention_dropout, stack.residual_dropout);
}

}  // namespace heed
