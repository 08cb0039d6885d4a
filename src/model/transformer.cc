#include "model/transformer.h"

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/cross_attention.h"
#include "model/editor.h"
#include "model/input_checks.h"
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
  return {.sequences = rows.sequences(), .ring = ring};
}

void require_rows(const TokenRows& rows, const char* name) {
  require(rows.count() >= 1, ErrorCode::invalid_argument, "a batch has at least one {}", name);
  check(rows.row_starts.back() == rows.rows(), "the last sequence ends with the rows");
  for (std::size_t b = 0; b + 1 < rows.row_starts.size(); ++b) {
    require(rows.row_starts[b + 1] > rows.row_starts[b], ErrorCode::invalid_argument,
            "{} {} of the batch has no tokens: expected at least one", name, b + 1);
  }
}

Pass ragged_pass(const TokenRows& rows, StackSite site) {
  return {.sequences = Sequences::of_lengths(rows.row_starts), .site = site};
}

View<const std::int32_t> view_of(const TokenRows& rows) {
  return {rows.tokens.data(), Shape{rows.rows()}};
}

// Encoder and decoder have distinct streams of dropout.
DropoutPlan at_site(DropoutPlan plan, StackSite site, std::int64_t first_row) {
  plan.site = site;
  plan.first_row = first_row;
  return plan;
}

struct PairPasses {
  Pass encoder;
  CrossMemory memory;
  Pass decoder;

  // Edited by `editor`, or null.
  PairPasses(const PairBatch& batch, const Transformer::PairStep& step, View<const float> encoded,
             Editor* editor) {
    encoder = ragged_pass(batch.source, StackSite::encoder);
    decoder = ragged_pass(batch.target, StackSite::decoder);
    encoder.dropout = at_site(step.dropout, StackSite::encoder, step.first_source_row);
    decoder.dropout = at_site(step.dropout, StackSite::decoder, step.first_target_row);
    encoder.probe = decoder.probe = step.probe;
    encoder.editor = decoder.editor = editor;
    memory = {.rows = encoded, .texts = encoder.sequences};
    decoder.memory = &memory;
  }
  PairPasses(const PairPasses&) = delete;
  PairPasses& operator=(const PairPasses&) = delete;
};

void require_pairs(const PairBatch& batch) {
  require_rows(batch.source, "source");
  require_rows(batch.target, "target");
  require(batch.source.count() == batch.target.count(), ErrorCode::invalid_argument,
          "{} sources and {} targets: expected as many", batch.source.count(),
          batch.target.count());
  check(std::ssize(batch.next) == batch.target.rows(), "a token after each of the target");
}

}  // namespace

Transformer::Transformer(const Architecture& architecture, ArenaMemory memory)
    : Transformer(architecture, Parameters(architecture, memory)) {}

Transformer::Transformer(const Architecture& architecture, BlockWeights blocks)
    : Transformer(architecture, Parameters(architecture, std::move(blocks))) {}

Transformer::Transformer(const Architecture& architecture, Parameters parameters)
    : architecture_(architecture),
      weights_(std::make_shared<Weights>(Weights{std::move(parameters), {}})) {
  for (const StackSpecification& stack : architecture.stacks) {
    require(architecture.is_encoder_decoder() ||
                stack.block.attention.positions != PositionKind::relative,
            ErrorCode::unsupported,
            "relative positions are those of encoder-decoders: a model of one stack has none");
    weights_->sinusoids.push_back(sinusoid_table(stack));
  }
}

void Transformer::place(Device device) {
  parameters().place(device);
  for (Tensor<float>& table : weights_->sinusoids) {
    if (!table.present() || table.device() == device) continue;
    Tensor<float> there(table.shape(), device);
    kernels::copy(table, there);
    table = std::move(there);
  }
}

void Transformer::require_one_stack() const {
  require(!architecture_.is_encoder_decoder(), ErrorCode::unsupported,
          "the model has an encoder and a decoder: expected a model of one stack, which reads one "
          "text");
}

void Transformer::require_two_stacks() const {
  require(
      architecture_.is_encoder_decoder(), ErrorCode::unsupported,
      "the model has one stack: expected an encoder-decoder, which reads a source and a target");
}

void Transformer::require_cached_decoding() const {
  require_two_stacks();
  require(editor_ == nullptr, ErrorCode::unsupported,
          "keys and values that are projected once for all steps cannot be those of a model with "
          "an editor");
}

Transformer Transformer::with_editor(std::shared_ptr<Editor> editor) const {
  Transformer edited(*this);
  if (editor_ != nullptr && editor != nullptr) {
    edited.editor_ = std::make_shared<OwnedJoin>(editor_, std::move(editor));
  } else if (editor != nullptr) {
    edited.editor_ = std::move(editor);
  }
  return edited;
}

void Transformer::set_dropout(float embedding, float attention, float residual) {
  for (StackSpecification& stack : architecture_.stacks) {
    stack.embedding_dropout = embedding;
    stack.attention_dropout = attention;
    stack.residual_dropout = residual;
  }
  architecture_.validate();
}

void Transformer::forward(View<const std::int32_t> tokens, const Pass& pass,
                          const StackActivations& activations) const {
  require_one_stack();
  require(specification().is_causal() || !pass.sequences.have_caches(), ErrorCode::unsupported,
          "an encoder has no cache of keys and values: every position attends to later ones");
  const EditorOfPass editor(editor_.get(), pass.editor);
  if (editor.get() == pass.editor) return stack_forward(stack(), tokens, pass, activations);
  Pass edited = pass;
  edited.editor = editor.get();
  stack_forward(stack(), tokens, edited, activations);
}

void Transformer::forward(const TextPass& source, const TextPass& target) const {
  require_two_stacks();
  const EditorOfPass source_editor(editor_.get(), source.pass.editor);
  const EditorOfPass target_editor(editor_.get(), target.pass.editor);
  Pass encoder_pass = source.pass, decoder_pass = target.pass;
  encoder_pass.editor = source_editor.get();
  decoder_pass.editor = target_editor.get();
  stack_forward(stack(StackSite::encoder), source.tokens, encoder_pass, source.activations);
  const CrossMemory memory{.rows = source.activations.final_norm(),
                           .texts = encoder_pass.sequences};
  decoder_pass.memory = &memory;
  stack_forward(stack(StackSite::decoder), target.tokens, decoder_pass, target.activations);
}

void Transformer::backward(View<const std::int32_t> tokens, const Pass& pass,
                           const StackActivations& activations, const ActivationGradients& buffers,
                           Gradients* gradients) const {
  require_one_stack();
  const EditorOfPass editor(editor_.get(), pass.editor);
  Pass edited = pass;
  edited.editor = editor.get();
  stack_backward(stack(), tokens, edited, activations, buffers,
                 gradients != nullptr ? &gradients->stack() : nullptr);
}

void Transformer::project(View<const float> x, View<float> logits, std::int64_t positions) const {
  require_unembedding(specification(), "a prediction");
  unembed(stack(), x, logits, positions);
}

Tensor<float> Transformer::project_tokens(View<const float> x, std::span<const std::int32_t> tokens,
                                          std::int64_t positions) const {
  require_unembedding(specification(), "a prediction");
  const std::int64_t rows = x.extent(0), wanted = std::ssize(tokens);
  const LinearWeights& unembedding = parameters().placed().unembedding;
  if (wanted == 0 || unembedding.prepared != nullptr) {
    Tensor<float> logits(Shape{rows, specification().vocabulary_size});
    project(x, logits, positions);
    if (wanted == 0) return logits;
    Tensor<float> chosen(Shape{rows, wanted});
    kernels::gather_rows(transposed<const float>(logits.view()), tokens, transposed(chosen.view()));
    return chosen;
  }
  // The rows of these tokens: sums have the order that they have in the whole product.
  Tensor<float> weight(Shape{wanted, x.extent(1)}, device()), bias, logits(Shape{rows, wanted});
  if (unembedding.bias.present()) bias = Tensor<float>(Shape{wanted}, device());
  kernels::gather_rows(unembedding.weight, tokens, weight);
  if (bias.present()) {
    kernels::gather_rows(unembedding.bias.reshape({specification().vocabulary_size, 1}), tokens,
                         bias.view().reshape({wanted, 1}));
  }
  kernels::LinearParameters<float> part{
      .weight = weight, .precision = unembedding.precision, .soft_cap = unembedding.soft_cap};
  if (bias.present()) part.bias = bias;
  kernels::linear_forward(x, part, logits, positions);
  return logits;
}

LossSum Transformer::loss(View<const std::int32_t> tokens, View<const std::int32_t> targets,
                          EvaluationBuffers& buffers, Probe* probe, KeyValueRing* ring) const {
  require_unembedding(specification(), "a loss");
  if (buffers.cache) buffers.cache->truncate(0);
  const PassRows rows(tokens, targets, ring);
  Pass pass = pass_of(rows, ring);
  if (buffers.cache) pass.sequences = Sequences::next_of(*buffers.cache, tokens.extent(1));
  pass.probe = probe;
  forward(rows.tokens(), pass, buffers.activations);
  return unembedding_loss(stack(),
                          {.x = buffers.activations.unembedding_in(),
                           .targets = flat(rows.targets()),
                           .losses = buffers.losses},
                          buffers.loss, pass.arithmetic_length());
}

LossSum Transformer::loss_and_gradients(View<const std::int32_t> tokens,
                                        View<const std::int32_t> targets, const Step& step,
                                        TrainingBuffers& buffers, Gradients& gradients) const {
  require_unembedding(specification(), "training");
  const PassRows rows(tokens, targets, step.ring);
  Pass pass = pass_of(rows, step.ring);
  pass.token_types = step.token_types;
  pass.dropout = step.dropout;
  pass.probe = step.probe;
  pass.editor = step.editor;
  forward(rows.tokens(), pass, buffers.activations);
  if (pass.wants_gradient(PointKind::logits, -1)) {
    const UnembeddingReading unembedding(parameters().stack().schedule);
    observe_logit_gradients(pass, parameters().placed().unembedding,
                            buffers.activations.unembedding_in(),
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

LossSum Transformer::loss(const PairBatch& batch, PairBuffers& buffers, Probe* probe) const {
  require_two_stacks();
  require_pairs(batch);
  buffers.resize(batch.source.rows(), batch.target.rows());
  const PairPasses passes(batch, {.probe = probe}, buffers.encoder_.final_norm(), editor_.get());
  stack_forward(stack(StackSite::encoder), view_of(batch.source), passes.encoder, buffers.encoder_);
  stack_forward(stack(StackSite::decoder), view_of(batch.target), passes.decoder, buffers.decoder_);
  const Shape rows{batch.target.rows()};
  return unembedding_loss(stack(StackSite::decoder),
                          {.x = buffers.decoder_.unembedding_in(),
                           .targets = {batch.next.data(), rows},
                           .losses = {buffers.losses_.data(), rows}},
                          buffers.loss_, ragged_positions);
}

LossSum Transformer::loss_and_gradients(const PairBatch& batch, const PairStep& step,
                                        PairBuffers& buffers, Gradients& gradients) const {
  require_two_stacks();
  require_pairs(batch);
  require(buffers.has_gradients_, ErrorCode::invalid_argument,
          "gradients need buffers that keep activations");
  buffers.resize(batch.source.rows(), batch.target.rows());
  const View<const float> encoded = buffers.encoder_.final_norm();
  const EditorOfPass editor(editor_.get(), step.editor);
  const PairPasses passes(batch, step, encoded, editor.get());
  const View<const std::int32_t> source = view_of(batch.source), target = view_of(batch.target);

  // 1. the encoder, 2. the decoder
  stack_forward(stack(StackSite::encoder), source, passes.encoder, buffers.encoder_);
  stack_forward(stack(StackSite::decoder), target, passes.decoder, buffers.decoder_);

  // 3. the loss
  const Shape rows{batch.target.rows()};
  const LossSum loss = unembedding_loss(stack(StackSite::decoder), gradients.stack(),
                                        {.x = buffers.decoder_.unembedding_in(),
                                         .targets = {batch.next.data(), rows},
                                         .losses = {buffers.losses_.data(), rows},
                                         .d_x = buffers.decoder_gradients_->norm,
                                         .scale = step.scale},
                                        buffers.loss_);

  // 2. the decoder: the gradient of what it attended to sums over its layers
  const View<float> d_memory(buffers.memory_gradient_.data(), encoded.shape());
  kernels::fill(d_memory, 0.0F);
  stack_backward(stack(StackSite::decoder), target, passes.decoder, buffers.decoder_,
                 *buffers.decoder_gradients_, &gradients.stack(), d_memory);

  // 1. the encoder
  kernels::copy(d_memory, buffers.encoder_gradients_->norm);
  stack_backward(stack(StackSite::encoder), source, passes.encoder, buffers.encoder_,
                 *buffers.encoder_gradients_, &gradients.stack(StackSite::encoder));
  return loss;
}

EncodedSources Transformer::encode(const TokenRows& sources, CacheType type) const {
  require_cached_decoding();
  require_rows(sources, "source");
  EncodedSources encoded{.row_starts = {sources.row_starts.begin(), sources.row_starts.end()}};
  StackActivations activations(architecture_.encoder(), 1, sources.rows(), Keep::one_block, 0,
                               device());
  stack_forward(stack(StackSite::encoder), view_of(sources),
                ragged_pass(sources, StackSite::encoder), activations);
  encoded.rows = Tensor<float>(activations.final_norm().shape(), device());
  kernels::copy(activations.final_norm(), encoded.rows);

  const AttentionSpecification& cross = *architecture_.decoder().block.cross_attention;
  std::vector<KeyValueCache*> caches;
  encoded.caches.reserve(static_cast<std::size_t>(sources.count()));
  for (std::int64_t b = 0; b < sources.count(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    encoded.caches.emplace_back(cross, architecture_.decoder().layers, 1,
                                sources.row_starts[at + 1] - sources.row_starts[at], type,
                                device());
    caches.push_back(&encoded.caches.back());
  }
  const CrossMemory memory{.rows = encoded.rows,
                           .texts = Sequences::of_lengths(encoded.row_starts, caches)};
  const Pass pass{.site = StackSite::decoder};
  const RotaryRows none;
  for (std::int64_t layer = 0; layer < architecture_.decoder().layers; ++layer) {
    const Reading block(stack(StackSite::decoder).parameters.schedule, {StackSite::decoder, layer});
    store_memory(stack(StackSite::decoder).layer_pass(layer, pass, none), memory);
  }
  for (KeyValueCache* cache : caches) cache->advance(cache->capacity());
  return encoded;
}

void Transformer::decode(const DecodeStep& step, StackActivations& activations,
                         View<float> logits) const {
  require_cached_decoding();
  const std::int64_t hypotheses = std::ssize(step.tokens);
  check(step.sources.size() == step.tokens.size(), "a source for each hypothesis");
  check(step.cache.batch() == hypotheses, "a cache of as many hypotheses");
  activations.resize(hypotheses, 1);
  std::vector<KeyValueCache*> caches;
  for (const KeyValueCache& cache : step.encoded.caches) {
    caches.push_back(const_cast<KeyValueCache*>(&cache));  // read only
  }
  const CrossMemory memory{.texts = Sequences::of_lengths(step.encoded.row_starts, caches),
                           .sources = step.sources};
  // There are usually many rows, and f32 weights are as fast with few. Quantised weights would be
  // dequantised at each step.
  const bool is_f32 = parameters().prepared_format() == kernels::WeightFormat::f32;
  const Pass pass{.sequences = Sequences::next_of(step.cache),
                  .length = is_f32 ? ragged_positions : kernels::decoding_step,
                  .memory = &memory,
                  .site = StackSite::decoder};
  stack_forward(stack(StackSite::decoder), {step.tokens.data(), Shape{hypotheses, 1}}, pass,
                activations);
  unembed(stack(StackSite::decoder), activations.unembedding_in(), logits,
          pass.arithmetic_length());
}

}  // namespace heed
