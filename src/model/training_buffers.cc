#include "model/training_buffers.h"

namespace heed {

TrainingBuffers::TrainingBuffers(const StackSpecification& config, std::int64_t batch,
                                 std::int64_t positions, Keep keep, Device device)
    : activations(config, batch, positions, keep, 0, device),
      gradients(config, batch * positions, 0, device),
      loss(config.vocabulary_size),
      losses(Shape{batch * positions}) {}

EvaluationBuffers::EvaluationBuffers(const StackSpecification& config, std::int64_t batch,
                                     std::int64_t positions, std::optional<CacheType> cache_type,
                                     Device device)
    : activations(config, batch, positions, Keep::one_block, 0, device),
      loss(config.vocabulary_size),
      losses(Shape{batch * positions}) {
  if (cache_type) cache.emplace(config, batch, positions, *cache_type, device);
}

PairBuffers::PairBuffers(const Architecture& architecture, Keep keep, Device device)
    : architecture_(architecture),
      has_gradients_(keep != Keep::one_block),
      encoder_(architecture.encoder(), 1, 1, keep, 0, device),
      decoder_(architecture.decoder(), 1, 1, keep, 1, device),
      loss_(architecture.decoder().vocabulary_size) {
  if (!has_gradients_) return;
  encoder_gradients_.emplace(architecture.encoder(), 1, 0, device);
  decoder_gradients_.emplace(architecture.decoder(), 1, 1, device);
}

std::int64_t PairBuffers::bytes_needed(const Architecture& architecture, Keep keep,
                                       std::int64_t source_rows, std::int64_t target_rows) {
  const StackSpecification& encoder = architecture.encoder();
  const StackSpecification& decoder = architecture.decoder();
  const auto f32 = static_cast<std::int64_t>(sizeof(float));
  std::int64_t bytes = StackActivations::bytes_needed(encoder, 1, source_rows, keep) +
                       StackActivations::bytes_needed(decoder, 1, target_rows, keep, source_rows) +
                       VocabularyLoss::bytes_needed(decoder.vocabulary_size, target_rows) +
                       target_rows * f32;
  if (keep == Keep::one_block) return bytes;
  return bytes + ActivationGradients::bytes_needed(encoder, source_rows) +
         ActivationGradients::bytes_needed(decoder, target_rows, source_rows) +
         source_rows * encoder.channels * f32;
}

void PairBuffers::resize(std::int64_t source_rows, std::int64_t target_rows) {
  encoder_.resize(1, source_rows);
  decoder_.resize(1, target_rows, source_rows);
  losses_.resize(static_cast<std::size_t>(target_rows));
  if (!has_gradients_) return;
  encoder_gradients_->resize(architecture_.encoder(), source_rows);
  decoder_gradients_->resize(architecture_.decoder(), target_rows, source_rows);
  const std::int64_t gradient = source_rows * architecture_.encoder().channels;
  if (memory_gradient_.size() < gradient) {
    memory_gradient_ = Tensor<float>(Shape{gradient}, encoder_.device());
  }
}

}  // namespace heed
