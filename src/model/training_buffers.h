// What training and evaluation need beside parameters, allocated once.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/cache.h"
#include "model/vocabulary.h"
#include "tensor/tensor.h"

namespace heed {

// Everything a training step of one batch shape needs.
struct TrainingBuffers {
  // Keep::every_block, or Keep::residuals, which trades a quarter more work for memory.
  TrainingBuffers(const StackSpecification& config, std::int64_t batch, std::int64_t positions,
                  Keep keep = Keep::every_block, Device device = {});

  StackActivations activations;
  ActivationGradients gradients;
  VocabularyLoss loss;
  Tensor<float> losses;  // (N), of the last batch
};

// Everything an evaluation of one batch shape needs.
struct EvaluationBuffers {
  // With a cache type, keys and values go through a cache of it, as in generation.
  EvaluationBuffers(const StackSpecification& config, std::int64_t batch, std::int64_t positions,
                    std::optional<CacheType> cache_type = std::nullopt, Device device = {});

  StackActivations activations;
  VocabularyLoss loss;
  Tensor<float> losses;  // (N), of the last batch
  std::optional<KeyValueCache> cache;
};

// Everything that training or evaluation of pairs needs; grows to the largest batch that it meets.
class PairBuffers {
 public:
  PairBuffers(const Architecture& architecture, Keep keep, Device device = {});

  StackActivations& encoder() { return encoder_; }
  StackActivations& decoder() { return decoder_; }
  VocabularyLoss& loss() { return loss_; }
  // Of each row of the last batch's targets, 0 where ignored.
  std::span<const float> losses() const { return losses_; }

  // Bytes of batches of so many rows.
  static std::int64_t bytes_needed(const Architecture& architecture, Keep keep,
                                   std::int64_t source_rows, std::int64_t target_rows);

 private:
  friend class Transformer;
  void resize(std::int64_t source_rows, std::int64_t target_rows);

  Architecture architecture_;
  bool has_gradients_;
  StackActivations encoder_;
  StackActivations decoder_;
  std::optional<ActivationGradients> encoder_gradients_;
  std::optional<ActivationGradients> decoder_gradients_;
  Tensor<float> memory_gradient_;  // (M, C), or more
  std::vector<float> losses_;      // (N)
  VocabularyLoss loss_;
};

}  // namespace heed
