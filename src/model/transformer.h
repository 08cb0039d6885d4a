// A transformer: one stack of blocks, or an encoder and the decoder that attends to it (Vaswani et
// al. 2017). With a causal mask, one stack is a GPT (Radford et al. 2019); with a full one, the
// encoder of a masked language model (Devlin et al. 2019).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/cache.h"
#include "model/parameters.h"
#include "model/pass.h"
#include "model/stack.h"
#include "model/stages.h"
#include "model/texts.h"
#include "model/training_buffers.h"
#include "model/vocabulary.h"

namespace heed {

// What decoders attend to, once it is encoded: keys and values of every source in every layer,
// projected once.
struct EncodedSources {
  Tensor<float> rows;  // (M, C), the encoder's end
  std::vector<std::int64_t> row_starts;
  std::vector<KeyValueCache> caches;

  std::int64_t count() const { return std::ssize(caches); }
};

// A stack's part of a pass over two texts. Borrowed.
struct TextPass {
  View<const std::int32_t> tokens;  // (B, T), or (N) in a ragged pass
  const Pass& pass;
  const StackActivations& activations;  // filled
};

class Transformer {
 public:
  // Parameters are zero, or not there yet (ArenaMemory::reserved).
  explicit Transformer(const Architecture& architecture, ArenaMemory memory = ArenaMemory::whole);
  // Some matrices of which are in blocks of a file.
  Transformer(const Architecture& architecture, BlockWeights blocks);
  Transformer(Transformer&&) noexcept = default;
  Transformer& operator=(Transformer&&) noexcept = default;

  // The same model, of the same parameters in memory, all of whose passes `editor` changes, before
  // the editor that a pass is given.
  Transformer with_editor(std::shared_ptr<Editor> editor) const;
  Editor* editor() const { return editor_.get(); }  // or null

  const Architecture& architecture() const { return architecture_; }
  // Of the only stack; of two, the decoder's where none is named.
  const StackSpecification& specification(StackSite site = StackSite::only) const {
    return architecture_.of(site);
  }
  // The only part of a description that may change after construction.
  void set_dropout(float embedding, float attention, float residual);
  Parameters& parameters() { return weights_->parameters; }
  const Parameters& parameters() const { return weights_->parameters; }

  // Where passes are computed: where the model and all that they need lies. At first the
  // processor; see Parameters::place.
  Device device() const { return parameters().device(); }
  void place(Device device);

  Stack stack(StackSite site = StackSite::only) const {
    return {specification(site), parameters().placed(site),
            site == StackSite::encoder ? weights_->sinusoids.front() : weights_->sinusoids.back()};
  }
  // The same of the processor's numbers, for what looks at them one by one.
  Stack stack_here(StackSite site = StackSite::only) const {
    return {specification(site), parameters().stack(site), {}};
  }
  // What the stages of a layer of the only stack work with, in a pass whose rows have the positions
  // of `rotary`.
  LayerPass layer_pass(std::int64_t layer, const Pass& pass, const RotaryRows& rotary) const {
    return stack().layer_pass(layer, pass, rotary);
  }
  // Of the rows of a pass.
  RotaryRows rotary_rows(const Pass& pass) const {
    return heed::rotary_rows(specification(pass.site), pass, device());
  }

  // Runs a forward pass of the only stack over tokens (B, T) and fills `activations`; project()
  // gives the logits of its final_norm() (B·T, C). With a cache, appends the new positions to it.
  // Throws Error{invalid_argument} for two stacks, a token outside the vocabulary, more positions
  // than the context has, and activations of another shape, and Error{unsupported} for an editor of
  // the logits.
  void forward(View<const std::int32_t> tokens, const Pass& pass,
               const StackActivations& activations) const;
  // Runs both stacks, as the passes say; that of the target needs no memory yet, and gets the
  // encoder's end. Throws likewise, for one stack instead of two.
  void forward(const TextPass& source, const TextPass& target) const;

  // logits (M, V) of any rows x (M, C) of final_norm(), of the decoder where there are two stacks.
  // `positions` is the length of the pass that the rows belong to (0: M): logits of a row are the
  // same beside any others.
  void project(View<const float> x, View<float> logits, std::int64_t positions = 0) const;
  // The same of some tokens alone, (M, tokens), to the bit; where none are named, of all.
  Tensor<float> project_tokens(View<const float> x, std::span<const std::int32_t> tokens,
                               std::int64_t positions) const;

  // The loss of predicting targets (B, T) from tokens (B, T): with a ring, that of this member's
  // rows, as PassRows lays them out; buffers are of 2·B sequences of a chunk.
  LossSum loss(View<const std::int32_t> tokens, View<const std::int32_t> targets,
               EvaluationBuffers& buffers, Probe* probe = nullptr,
               KeyValueRing* ring = nullptr) const;
  // Of two stacks: the summed loss of predicting `next` after each position of `target`.
  LossSum loss(const PairBatch& batch, PairBuffers& buffers, Probe* probe = nullptr) const;

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
                             Gradients& gradients) const;
  struct PairStep {
    float scale = 1.0F;
    DropoutPlan dropout{};
    Probe* probe = nullptr;
    Editor* editor = nullptr;
    // Of a batch that is a part of another: the rows before it on either side.
    std::int64_t first_source_row = 0;
    std::int64_t first_target_row = 0;
  };
  LossSum loss_and_gradients(const PairBatch& batch, const PairStep& step, PairBuffers& buffers,
                             Gradients& gradients) const;

  // Backward of a forward pass of the only stack that kept every block or the residual stream.
  // buffers.norm holds the gradient (N, C) with respect to final_norm(): of the loss, or of
  // anything else computed from it. A probe of `pass` observes gradients of activations. Gradients
  // of parameters accumulate in `gradients`; null skips them.
  void backward(View<const std::int32_t> tokens, const Pass& pass,
                const StackActivations& activations, const ActivationGradients& buffers,
                Gradients* gradients) const;

  // Encodes sources and projects what decoders attend to, in caches of a type. Each source's
  // numbers are the same beside any others. This and decode() throw Error{unsupported} for one
  // stack, and for a model with an editor: see generate/beam_search.cc.
  EncodedSources encode(const TokenRows& sources, CacheType type) const;

  // One step of decoding for R hypotheses at once: tokens (R), each the last of its hypothesis,
  // appended to `cache` (R sequences of one length); hypothesis r attends to source sources[r].
  // Those of one source stand side by side. logits (R, V) of the next token.
  struct DecodeStep {
    std::span<const std::int32_t> tokens;
    std::span<const std::int64_t> sources;
    const EncodedSources& encoded;
    KeyValueCache& cache;
  };
  void decode(const DecodeStep& step, StackActivations& activations, View<float> logits) const;

  // Room for `sequences` of up to `capacity` tokens that are written.
  KeyValueCache make_cache(std::int64_t sequences, std::int64_t capacity, CacheType type) const {
    return {specification(), sequences, capacity, type, device()};
  }

 private:
  struct Weights {
    Parameters parameters;
    std::vector<Tensor<float>> sinusoids;  // of each stack
  };
  Transformer(const Transformer&) = default;
  Transformer(const Architecture& architecture, Parameters parameters);
  void require_one_stack() const;
  void require_two_stacks() const;
  void require_cached_decoding() const;

  Architecture architecture_;
  std::shared_ptr<Weights> weights_;  // shared with models that differ in their editor
  std::shared_ptr<Editor> editor_;
};

}  // namespace heed
