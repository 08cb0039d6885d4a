#include "train/translator_files.h"

#include "base/error.h"
#include "formats/model_files.h"
#include "kernels/prepared_weight.h"
#include "train/first_model.h"
#include "train/writable_shape.h"

namespace heed {

Architecture translator_architecture(const TrainSettings& settings,
                                     const TranslationTokenizers& tokenizers) {
  const auto start =
      tokenizers.target->start() ? tokenizers.target->start() : tokenizers.target->padding();
  require(start.has_value(), ErrorCode::invalid_argument,
          "the tokenizer '{}' has neither <s> nor <pad>, one of which a decoder's text begins with",
          settings.tokenizer);
  require(tokenizers.source == tokenizers.target, ErrorCode::unsupported,
          "'{}' holds a tokenizer for each side: a translator that is trained from scratch has one "
          "for both",
          settings.tokenizer);
  Architecture architecture = pair_architecture(settings);
  architecture.padding = tokenizers.target->padding().value_or(-1);
  architecture.decoder_start = *start;
  return architecture;
}

EncoderDecoder translator_to_fine_tune(const std::filesystem::path& from,
                                       const TrainSettings& settings,
                                       const TranslationTokenizers& tokenizers) {
  EncoderDecoder model = load_encoder_decoder(from);
  const kernels::WeightFormat stored = model.parameters().prepared_format();
  require(stored == kernels::WeightFormat::f32, ErrorCode::unsupported,
          "'{}' holds weights in {}, which cannot be trained: take the model that it was "
          "converted from",
          from.string(), kernels::weight_format_name(stored));
  const Architecture& architecture = model.architecture();
  for (const auto& [tokenizer, stack] :
       {std::pair(tokenizers.source.get(), &architecture.encoder()),
        std::pair(tokenizers.target.get(), &architecture.decoder())}) {
    require(tokenizer->vocabulary_size() <= stack->vocabulary_size, ErrorCode::corrupt_data,
            "'{}': its tokenizer has {} tokens, its model only {}", from.string(),
            tokenizer->vocabulary_size(), stack->vocabulary_size);
  }
  require(architecture.decoder_start >= 0, ErrorCode::unsupported,
          "'{}' does not say which token a decoder's text begins with", from.string());
  model.set_dropout(settings.model.embedding_dropout, settings.model.attention_dropout,
                    settings.model.residual_dropout);
  require_writable_dropout(architecture, from);
  return model;
}

}  // namespace heed
