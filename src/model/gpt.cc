#include "model/gpt.h"

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/joined_editor.h"
#include "model/view_shapes.h"

namespace heed {
namespace {

View<const std::int32_t> flat(View<const std::int32_t> targets) {
  return targets.reshape({targets.size()});
}

// The same, of editors that it owns.
class OwnedJoin final : public JoinedEditor {
 public:
  OwnedJoin(std::shared_ptr<Editor> first, std::shared_ptr<Editor> second)
      : JoinedEditor(*first, *second), first_(std::move(first)), second_(std::move(second)) {}

 private:
  std::shared_ptr<Editor> first_, second_;
};

Pass pass_of(const PassRows& rows, KeyValueRing* ring) {
  return {.batch = rows.tokens().extent(0),
          .positions = rows.tokens().extent(1),
          .first_positions = rows.first_positions(),
          .projected_as = rows.sequence_positions(),
          .ring = ring};
}

}  // namespace

TrainingBuffers::TrainingBuffers(const StackSpecification& config, std::int64_t batch,
                                 std::int64_t positions, Keep keep)
    : activations(config, batch, positions, keep),
      gradients(config, batch * positions),
      loss(config.vocabulary_size),
      losses(Shape{batch * positions}) {}

EvaluationBuffers::EvaluationBuffers(const StackSpecification& config, std::int64_t batch,
                                     std::int64_t positions, std::optional<CacheType> cache_type)
    : activations(config, batch, positions, Keep::one_block),
      loss(config.vocabulary_size),
      losses(Shape{batch * positions}) {
  if (cache_type) cache.emplace(config, batch, positions, *cache_type);
}

Gpt::Gpt(const StackSpecification& config, ArenaMemory memory)
    : config_(config),
      weights_(std::make_shared<Weights>(
          Weights{GptParameters({.stacks = {config}}, memory), sinusoid_table(config)})) {
  require(config.block.attention.positions != PositionKind::relative, ErrorCode::unsupported,
          "relative positions are those of encoder-decoders: a model of one stack has none");
}

Gpt Gpt::with_editor(std::shared_ptr<Editor> editor) const {
  Gpt edited(*this);
  if (editor_ != nullptr && editor != nullptr) {
    edited.editor_ = std::make_shared<OwnedJoin>(editor_, std::move(editor));
  } else if (editor != nullptr) {
    edited.editor_ = std::move(editor);
  }
  return edited;
}

void Gpt::set_dropout(float embedding, float attention, float residual) {
  config_.embedding_dropout = embedding;
  config_.attention_dropout = attention;
  config_.residual_dropout = residual;
  config_.validate();
}

void Gpt::forward(View<const std::int32_t> tokens, const Pass& pass,
                  const GptActivations& activations) const {
  require(config_.is_causal() || (pass.cache == nullptr && pass.caches.empty()),
          ErrorCode::unsupported,
          "an encoder has no cache of keys and values: every position attends to later ones");
  const EditorOfPass editor(editor_.get(), pass.editor);
  if (editor.get() == pass.editor) return stack_forward(stack(), tokens, pass, activations);
  Pass edited = pass;
  edited.editor = editor.get();
  stack_forward(stack(), tokens, edited, activations);
}

void Gpt::backward(View<const std::int32_t> tokens, const Pass& pass,
                   const GptActivations& activations, const GptActivationGradients& buffers,
                   GptGradients* gradients) const {
  const EditorOfPass editor(editor_.get(), pass.editor);
  Pass edited = pass;
  edited.editor = editor.get();
  stack_backward(stack(), tokens, edited, activations, buffers,
                 gradients != nullptr ? &gradients->stack() : nullptr);
}

void Gpt::project(View<const float> x, View<float> logits, std::int64_t positions) const {
  unembed(stack(), x, logits, positions);
}

Tensor<float> Gpt::project_tokens(View<const float> x, std::span<const std::int32_t> tokens,
                                  std::int64_t positions) const {
  const std::int64_t rows = x.extent(0), wanted = std::ssize(tokens);
  const LinearWeights& unembedding = parameters().unembedding();
  if (wanted == 0 || unembedding.prepared != nullptr) {
    Tensor<float> logits(Shape{rows, config_.vocabulary_size});
    project(x, logits, positions);
    if (wanted == 0) return logits;
    Tensor<float> chosen(Shape{rows, wanted});
    kernels::gather_rows(transposed<const float>(logits.view()), tokens, transposed(chosen.view()));
    return chosen;
  }
  // The rows of these tokens: sums have the order that they have in the whole product.
  Tensor<float> weight(Shape{wanted, x.extent(1)}), bias, logits(Shape{rows, wanted});
  if (unembedding.bias.present()) bias = Tensor<float>(Shape{wanted});
  kernels::gather_rows(unembedding.weight, tokens, weight);
  if (bias.present()) {
    kernels::gather_rows(unembedding.bias.reshape({config_.vocabulary_size, 1}), tokens,
                         bias.view().reshape({wanted, 1}));
  }
  kernels::LinearParameters<float> part{.weight = weight, .precision = unembedding.precision};
  if (bias.present()) part.bias = bias;
  kernels::linear_forward(x, part, logits, positions);
  return logits;
}

LossSum Gpt::loss(View<const std::int32_t> tokens, View<const std::int32_t> targets,
                  EvaluationBuffers& buffers, Probe* probe, KeyValueRing* ring) const {
  if (buffers.cache) buffers.cache->truncate(0);
  const PassRows rows(tokens, targets, ring);
  Pass pass = pass_of(rows, ring);
  pass.cache = buffers.cache ? &*buffers.cache : nullptr;
  pass.probe = probe;
  forward(rows.tokens(), pass, buffers.activations);
  return unembedding_loss(stack(),
                          {.x = buffers.activations.unembedding_in(),
                           .targets = flat(rows.targets()),
                           .losses = buffers.losses},
                          buffers.loss, pass.sequence_positions());
}

LossSum Gpt::loss_and_gradients(View<const std::int32_t> tokens, View<const std::int32_t> targets,
                                const Step& step, TrainingBuffers& buffers,
                                GptGradients& gradients) const {
  const PassRows rows(tokens, targets, step.ring);
  Pass pass = pass_of(rows, step.ring);
  pass.token_types = step.token_types;
  pass.dropout = step.dropout;
  pass.probe = step.probe;
  pass.editor = step.editor;
  forward(rows.tokens(), pass, buffers.activations);
  if (pass.wants_gradient(PointKind::logits, -1)) {
    const UnembeddingReading unembedding(parameters().stack().schedule);
    observe_logit_gradients(pass, parameters().unembedding(), buffers.activations.unembedding_in(),
                            {flat(rows.targets()), step.scale, buffers.loss.label_smoothing()});
  }
  const LossSum loss = unembedding_loss(stack(), gradients.stack(),
                                        {.x = buffers.activations.unembedding_in(),
                                         .targets = flat(rows.targets()),
                                         .losses = buffers.losses,
                                         .d_x = buffers.gradients.norm,
                                         .scale = step.scale},
                                        buffers.loss);
  backward(rows.tokens(), pass, buffers.activations, buffers.gradients, &gradients);
  return loss;
}

}  // namespace heed
