// One stack of a model at work: embedding, blocks, final norm. Whatever runs a model, of one stack
// or two, calls these.
#pragma once

#include "model/activations.h"
#include "model/architecture.h"
#include "model/parameters.h"
#include "model/pass.h"
#include "model/stages.h"
#include "model/vocabulary.h"
#include "tensor/tensor.h"

namespace heed {

// A stack's description and numbers. Borrowed.
struct Stack {
  const StackSpecification& specification;
  const StackParameters& parameters;
  View<const float> sinusoids;  // (P, C), where positions are sinusoidal

  // What the stages of a layer work with, in a pass whose rows have the positions of `rotary`.
  LayerPass layer_pass(std::int64_t layer, const Pass& pass, const RotaryRows& rotary,
                       const kernels::PositionBias<float>& bias = {}) const {
    const BlockParameters& block = parameters.blocks[static_cast<std::size_t>(layer)];
    return {specification, block, layer, pass, rotary, bias};
  }
};

// (P, C): sin(t / 10000^(2i/C)) and cos of the same (Vaswani et al. 2017, 3.5); absent where
// positions are not sinusoidal.
Tensor<float> sinusoid_table(const StackSpecification& stack);

// Of the rows of a pass that is computed there.
RotaryRows rotary_rows(const StackSpecification& stack, const Pass& pass, Device device);

// Runs tokens (B, T), or (N) in a ragged pass, through the stack and fills `activations`. With a
// cache, appends the new positions to it. Throws Error{invalid_argument} for a token outside the
// vocabulary, more positions than the context has, and activations of another shape, and
// Error{unsupported} for an edit that the stack cannot make.
void stack_forward(const Stack& stack, View<const std::int32_t> tokens, const Pass& pass,
                   const StackActivations& activations);
// (N, C): the stream where a pass ended, which Pass::layers says.
View<float> stack_stream(const Pass& pass, const StackActivations& activations);

// logits (M, V) of rows x (M, C) of the end of the stack.
void unembed(const Stack& stack, View<const float> x, View<float> logits, std::int64_t positions);

// The loss of predicting `targets` (N) from rows x (N, C) of the end of the stack, of passes of so
// many positions. With gradients, backward starts here: fills d_x (N, C), and adds to the gradients
// of the unembedding, as forward_backward().
struct UnembeddingLoss {
  View<const float> x;
  View<const std::int32_t> targets;
  View<float> losses;  // (N)
  View<float> d_x{};
  float scale = 1.0F;  // of gradients
};
LossSum unembedding_loss(const Stack& stack, const UnembeddingLoss& rows, VocabularyLoss& loss,
                         std::int64_t positions);
LossSum unembedding_loss(const Stack& stack, const StackGradients& gradients,
                         const UnembeddingLoss& rows, VocabularyLoss& loss);

// Backward of a forward pass that kept every block or the residual stream. buffers.norm holds the
// gradient (N, C) of what the unembedding reads. Gradients of parameters accumulate in `gradients`;
// null skips them. d_memory (M, C) accumulates the gradient of what cross-attention attends to.
void stack_backward(const Stack& stack, View<const std::int32_t> tokens, const Pass& pass,
                    const StackActivations& activations, const ActivationGradients& buffers,
                    const StackGradients* gradients, View<float> d_memory = {});

}  // namespace heed
