// The decoder-only GPT: token + position embedding, L pre-norm blocks, a final norm, and the
// vocabulary projection (Radford et al. 2019).
#pragma once

#include <optional>

#include "model/activations.h"
#include "model/cache.h"
#include "model/config.h"
#include "model/parameters.h"
#include "model/pass.h"
#include "model/vocabulary.h"

namespace heed {

// Everything a training step of one batch shape needs, allocated once.
struct TrainingBuffers {
  // Keep::every_block, or Keep::residuals, which trades a quarter more work for memory.
  TrainingBuffers(const GptConfig& config, std::int64_t batch, std::int64_t positions,
                  Keep keep = Keep::every_block);

  GptActivations activations;
  GptActivationGradients gradients;
  VocabularyLoss loss;
  Tensor<float> losses;  // (N), of the last batch
};

// Everything an evaluation of one batch shape needs.
struct EvaluationBuffers {
  // With a cache type, keys and values go through a cache of it, as in generation.
  EvaluationBuffers(const GptConfig& config, std::int64_t batch, std::int64_t positions,
                    std::optional<CacheType> cache_type = std::nullopt);

  GptActivations activations;
  VocabularyLoss loss;
  Tensor<float> losses;  // (N), of the last batch
  std::optional<KeyValueCache> cache;
};

class Gpt {
 public:
  explicit Gpt(const GptConfig& config);  // parameters are zero

  const GptConfig& config() const { return config_; }
  // The only part of a config that may change after construction.
  void set_dropout(float embedding, float attention, float residual);
  GptParameters& parameters() { return parameters_; }
  const GptParameters& parameters() const { return parameters_; }

  // Runs a forward pass over tokens (B, T) and fills `activations`; project() gives the logits of
  // its final_norm() (B·T, C). With a cache, appends the new positions to it. Throws
  // Error{invalid_argument} for a token outside the vocabulary, more positions than the context
  // has, and activations of another shape, and Error{unsupported} for an editor of the logits.
  void forward(View<const std::int32_t> tokens, const Pass& pass,
               const GptActivations& activations) const;

  // logits (M, V) of any rows x (M, C) of final_norm().
  void project(View<const float> x, View<float> logits) const;

  // The loss of predicting targets (B, T) from tokens (B, T).
  LossSum loss(View<const std::int32_t> tokens, View<const std::int32_t> targets,
               EvaluationBuffers& buffers, Probe* probe = nullptr) const;

  // Forward and backward of a batch; scale · gradient of the summed loss accumulates in
  // `gradients`.
  struct Step {
    float scale = 1.0F;
    DropoutPlan dropout{};
    Probe* probe = nullptr;
  };
  LossSum loss_and_gradients(View<const std::int32_t> tokens, View<const std::int32_t> targets,
                             const Step& step, TrainingBuffers& buffers,
                             GptGradients& gradients) const;

  // Backward of a forward pass that kept every block or the residual stream. buffers.norm holds the
  // gradient (N, C) with respect to final_norm(): of the loss, or of anything else computed from
  // it. A probe of `pass` observes gradients of activations. Gradients of parameters accumulate in
  // `gradients`; null skips them.
  void backward(View<const std::int32_t> tokens, const Pass& pass,
                const GptActivations& activations, const GptActivationGradients& buffers,
                GptGradients* gradients) const;

 private:
  kernels::EmbeddingInput<float> embedding_input(View<const std::int32_t> tokens,
                                                 const Pass& pass) const;

  GptConfig config_;
  GptParameters parameters_;
};

}  // namespace heed
