// A model of one stack: token + position embedding, L blocks, a final norm, and the vocabulary
// projection. With a causal mask it is the GPT (Radford et al. 2019); with a full one, the encoder
// of a masked language model (Devlin et al. 2019).
#pragma once

#include <memory>
#include <optional>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/cache.h"
#include "model/parameters.h"
#include "model/pass.h"
#include "model/stack.h"
#include "model/stages.h"
#include "model/vocabulary.h"

namespace heed {

// Everything a training step of one batch shape needs, allocated once.
struct TrainingBuffers {
  // Keep::every_block, or Keep::residuals, which trades a quarter more work for memory.
  TrainingBuffers(const StackSpecification& config, std::int64_t batch, std::int64_t positions,
                  Keep keep = Keep::every_block);

  GptActivations activations;
  GptActivationGradients gradients;
  VocabularyLoss loss;
  Tensor<float> losses;  // (N), of the last batch
};

// Everything an evaluation of one batch shape needs.
struct EvaluationBuffers {
  // With a cache type, keys and values go through a cache of it, as in generation.
  EvaluationBuffers(const StackSpecification& config, std::int64_t batch, std::int64_t positions,
                    std::optional<CacheType> cache_type = std::nullopt);

  GptActivations activations;
  VocabularyLoss loss;
  Tensor<float> losses;  // (N), of the last batch
  std::optional<KeyValueCache> cache;
};

class Gpt {
 public:
  // Parameters are zero, or not there yet (ArenaMemory::reserved).
  explicit Gpt(const StackSpecification& config, ArenaMemory memory = ArenaMemory::whole);
  Gpt(Gpt&&) noexcept = default;
  Gpt& operator=(Gpt&&) noexcept = default;

  // The same model, of the same parameters in memory, all of whose passes `editor` changes, before
  // the editor that a pass is given.
  Gpt with_editor(std::shared_ptr<Editor> editor) const;
  Editor* editor() const { return editor_.get(); }  // or null

  const StackSpecification& config() const { return config_; }
  // The only part of a config that may change after construction.
  void set_dropout(float embedding, float attention, float residual);
  GptParameters& parameters() { return weights_->parameters; }
  const GptParameters& parameters() const { return weights_->parameters; }

  // Runs a forward pass over tokens (B, T) and fills `activations`; project() gives the logits of
  // its final_norm() (B·T, C). With a cache, appends the new positions to it. Throws
  // Error{invalid_argument} for a token outside the vocabulary, more positions than the context
  // has, and activations of another shape, and Error{unsupported} for an editor of the logits.
  void forward(View<const std::int32_t> tokens, const Pass& pass,
               const GptActivations& activations) const;

  // logits (M, V) of any rows x (M, C) of final_norm(). `positions` is the length of the pass that
  // the rows belong to (0: M): logits of a row are the same beside any others.
  void project(View<const float> x, View<float> logits, std::int64_t positions = 0) const;
  // The same of some tokens alone, (M, tokens), to the bit; where none are named, of all.
  Tensor<float> project_tokens(View<const float> x, std::span<const std::int32_t> tokens,
                               std::int64_t positions) const;

  Stack stack() const { return {config_, parameters().stack(), weights_->sinusoids}; }
  // What the stages of a layer work with, in a pass whose rows have the positions of `rotary`.
  LayerPass layer_pass(std::int64_t layer, const Pass& pass, const RotaryRows& rotary) const {
    return {config_, parameters().block(layer), layer, pass, rotary};
  }
  // Of the rows of a pass.
  RotaryRows rotary_rows(const Pass& pass) const { return heed::rotary_rows(config_, pass); }

  // The loss of predicting targets (B, T) from tokens (B, T): with a ring, that of this member's
  // rows, as PassRows lays them out; buffers are of 2·B sequences of a chunk.
  LossSum loss(View<const std::int32_t> tokens, View<const std::int32_t> targets,
               EvaluationBuffers& buffers, Probe* probe = nullptr,
               KeyValueRing* ring = nullptr) const;

  // Forward and backward of a batch; scale · gradient of the summed loss accumulates in
  // `gradients`. With a ring, losses and gradients of all members add up to those of the batch.
  struct Step {
    float scale = 1.0F;
    DropoutPlan dropout{};
    Probe* probe = nullptr;
    Editor* editor = nullptr;  // of values and gradients; see backward_sees_edit()
    std::span<const std::int32_t> token_types{};  // (B·T), of the pass
    KeyValueRing* ring = nullptr;
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
  struct Weights {
    GptParameters parameters;
    Tensor<float> sinusoids;
  };
  Gpt(const Gpt&) = default;

  StackSpecification config_;
  std::shared_ptr<Weights> weights_;  // shared with models that differ in their editor
  std::shared_ptr<Editor> editor_;
};

}  // namespace heed
