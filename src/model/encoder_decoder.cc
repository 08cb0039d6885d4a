#include "model/encoder_decoder.h"

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/cross_attention.h"

namespace heed {
namespace {

void require_rows(const TokenRows& rows, const char* name) {
  require(rows.count() >= 1, ErrorCode::invalid_argument, "a batch has at least one {}", name);
  check(rows.row_starts.back() == rows.rows(), "the last sequence ends with the rows");
  for (std::size_t b = 0; b + 1 < rows.row_starts.size(); ++b) {
    require(rows.row_starts[b + 1] > rows.row_starts[b], ErrorCode::invalid_argument,
            "{} {} of the batch has no tokens: expected at least one", name, b + 1);
  }
}

Pass ragged_pass(const TokenRows& rows, StackSite site) {
  return {.batch = rows.count(),
          .positions = ragged_positions,
          .row_starts = rows.row_starts,
          .site = site};
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

  PairPasses(const PairBatch& batch, const EncoderDecoder::Step& step, View<const float> encoded) {
    encoder = ragged_pass(batch.source, StackSite::encoder);
    decoder = ragged_pass(batch.target, StackSite::decoder);
    encoder.dropout = at_site(step.dropout, StackSite::encoder, step.first_source_row);
    decoder.dropout = at_site(step.dropout, StackSite::decoder, step.first_target_row);
    encoder.probe = decoder.probe = step.probe;
    encoder.editor = decoder.editor = step.editor;
    memory = {.rows = encoded, .row_starts = batch.source.row_starts};
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

PairBuffers::PairBuffers(const Architecture& architecture, Keep keep)
    : architecture_(architecture),
      has_gradients_(keep != Keep::one_block),
      encoder_(architecture.encoder(), 1, 1, keep),
      decoder_(architecture.decoder(), 1, 1, keep, 1),
      loss_(architecture.decoder().vocabulary_size) {
  if (!has_gradients_) return;
  encoder_gradients_.emplace(architecture.encoder(), 1);
  decoder_gradients_.emplace(architecture.decoder(), 1, 1);
}

std::int64_t PairBuffers::bytes_needed(const Architecture& architecture, Keep keep,
                                       std::int64_t source_rows, std::int64_t target_rows) {
  const StackSpecification& encoder = architecture.encoder();
  const StackSpecification& decoder = architecture.decoder();
  const auto f32 = static_cast<std::int64_t>(sizeof(float));
  std::int64_t bytes = GptActivations::bytes_needed(encoder, 1, source_rows, keep) +
                       GptActivations::bytes_needed(decoder, 1, target_rows, keep, source_rows) +
                       VocabularyLoss::bytes_needed(decoder.vocabulary_size, target_rows) +
                       target_rows * f32;
  if (keep == Keep::one_block) return bytes;
  return bytes + GptActivationGradients::bytes_needed(encoder, source_rows) +
         GptActivationGradients::bytes_needed(decoder, target_rows, source_rows) +
         source_rows * encoder.channels * f32;
}

void PairBuffers::resize(std::int64_t source_rows, std::int64_t target_rows) {
  encoder_.resize(1, source_rows);
  decoder_.resize(1, target_rows, source_rows);
  losses_.resize(static_cast<std::size_t>(target_rows));
  if (!has_gradients_) return;
  encoder_gradients_->resize(architecture_.encoder(), source_rows);
  decoder_gradients_->resize(architecture_.decoder(), target_rows, source_rows);
  memory_gradient_.resize(static_cast<std::size_t>(source_rows * architecture_.encoder().channels));
}

EncoderDecoder::EncoderDecoder(const Architecture& architecture, ArenaMemory memory)
    : architecture_(architecture),
      parameters_(architecture, memory),
      encoder_sinusoids_(sinusoid_table(architecture.encoder())),
      decoder_sinusoids_(sinusoid_table(architecture.decoder())) {
  require(architecture.is_encoder_decoder(), ErrorCode::invalid_argument,
          "an encoder-decoder has two stacks, not {}", architecture.stacks.size());
}

void EncoderDecoder::set_dropout(float embedding, float attention, float residual) {
  for (StackSpecification& stack : architecture_.stacks) {
    stack.embedding_dropout = embedding;
    stack.attention_dropout = attention;
    stack.residual_dropout = residual;
  }
  architecture_.validate();
}

void EncoderDecoder::forward(View<const std::int32_t> source, const Pass& encoder_pass,
                             const GptActivations& encoder_activations,
                             View<const std::int32_t> target, const Pass& decoder_pass,
                             const GptActivations& decoder_activations) const {
  stack_forward(encoder(), source, encoder_pass, encoder_activations);
  std::vector<std::int64_t> row_starts(encoder_pass.row_starts.begin(),
                                       encoder_pass.row_starts.end());
  for (std::int64_t b = 0; !encoder_pass.is_ragged() && b <= encoder_pass.batch; ++b) {
    row_starts.push_back(b * encoder_pass.positions);
  }
  const CrossMemory memory{.rows = encoder_activations.final_norm(), .row_starts = row_starts};
  Pass pass = decoder_pass;
  pass.memory = &memory;
  stack_forward(decoder(), target, pass, decoder_activations);
}

LossSum EncoderDecoder::loss(const PairBatch& batch, PairBuffers& buffers, Probe* probe) const {
  require_pairs(batch);
  buffers.resize(batch.source.rows(), batch.target.rows());
  const PairPasses passes(batch, {.probe = probe}, buffers.encoder_.final_norm());
  stack_forward(encoder(), view_of(batch.source), passes.encoder, buffers.encoder_);
  stack_forward(decoder(), view_of(batch.target), passes.decoder, buffers.decoder_);
  const Shape rows{batch.target.rows()};
  return unembedding_loss(decoder(),
                          {.x = buffers.decoder_.unembedding_in(),
                           .targets = {batch.next.data(), rows},
                           .losses = {buffers.losses_.data(), rows}},
                          buffers.loss_, ragged_positions);
}

LossSum EncoderDecoder::loss_and_gradients(const PairBatch& batch, const Step& step,
                                           PairBuffers& buffers, GptGradients& gradients) const {
  require_pairs(batch);
  require(buffers.has_gradients_, ErrorCode::invalid_argument,
          "gradients need buffers that keep activations");
  buffers.resize(batch.source.rows(), batch.target.rows());
  const View<const float> encoded = buffers.encoder_.final_norm();
  const PairPasses passes(batch, step, encoded);
  const View<const std::int32_t> source = view_of(batch.source), target = view_of(batch.target);

  // 1. the encoder, 2. the decoder
  stack_forward(encoder(), source, passes.encoder, buffers.encoder_);
  stack_forward(decoder(), target, passes.decoder, buffers.decoder_);

  // 3. the loss
  const Shape rows{batch.target.rows()};
  const LossSum loss = unembedding_loss(decoder(), gradients.stack(),
                                        {.x = buffers.decoder_.unembedding_in(),
                                         .targets = {batch.next.data(), rows},
                                         .losses = {buffers.losses_.data(), rows},
                                         .d_x = buffers.decoder_gradients_->norm,
                                         .scale = step.scale},
                                        buffers.loss_);

  // 2. the decoder: the gradient of what it attended to sums over its layers
  const View<float> d_memory(buffers.memory_gradient_.data(), encoded.shape());
  kernels::fill(d_memory, 0.0F);
  stack_backward(decoder(), target, passes.decoder, buffers.decoder_, *buffers.decoder_gradients_,
                 &gradients.stack(), d_memory);

  // 1. the encoder
  kernels::copy(d_memory, buffers.encoder_gradients_->norm);
  stack_backward(encoder(), source, passes.encoder, buffers.encoder_, *buffers.encoder_gradients_,
                 &gradients.encoder());
  return loss;
}

EncodedSources EncoderDecoder::encode(const TokenRows& sources, CacheType type) const {
  require_rows(sources, "source");
  EncodedSources encoded{.row_starts = {sources.row_starts.begin(), sources.row_starts.end()}};
  GptActivations activations(architecture_.encoder(), 1, sources.rows(), Keep::one_block);
  stack_forward(encoder(), view_of(sources), ragged_pass(sources, StackSite::encoder), activations);
  encoded.rows = Tensor<float>(activations.final_norm().shape());
  kernels::copy(activations.final_norm(), encoded.rows);

  const AttentionSpecification& cross = *architecture_.decoder().block.cross_attention;
  std::vector<KeyValueCache*> caches;
  encoded.caches.reserve(static_cast<std::size_t>(sources.count()));
  for (std::int64_t b = 0; b < sources.count(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    encoded.caches.emplace_back(cross, architecture_.decoder().layers, 1,
                                sources.row_starts[at + 1] - sources.row_starts[at], type);
    caches.push_back(&encoded.caches.back());
  }
  const CrossMemory memory{
      .rows = encoded.rows, .row_starts = encoded.row_starts, .caches = caches};
  const Pass pass{.site = StackSite::decoder};
  const RotaryRows none;
  for (std::int64_t layer = 0; layer < architecture_.decoder().layers; ++layer) {
    const Reading block(decoder().parameters.schedule, {StackSite::decoder, layer});
    store_memory(decoder().layer_pass(layer, pass, none), memory);
  }
  for (KeyValueCache* cache : caches) cache->advance(cache->capacity());
  return encoded;
}

void EncoderDecoder::decode(const DecodeStep& step, GptActivations& activations,
                            View<float> logits) const {
  const std::int64_t hypotheses = std::ssize(step.tokens);
  check(step.sources.size() == step.tokens.size(), "a source for each hypothesis");
  check(step.cache.batch() == hypotheses, "a cache of as many hypotheses");
  activations.resize(hypotheses, 1);
  std::vector<KeyValueCache*> caches;
  for (const KeyValueCache& cache : step.encoded.caches) {
    caches.push_back(const_cast<KeyValueCache*>(&cache));  // read only
  }
  const CrossMemory memory{
      .row_starts = step.encoded.row_starts, .caches = caches, .sources = step.sources};
  // There are usually many rows, and f32 weights are as fast with few. Quantised weights would be
  // dequantised at each step.
  const bool is_f32 = parameters_.prepared_format() == kernels::WeightFormat::f32;
  const std::int64_t projected_as = is_f32 ? ragged_positions : kernels::decoding_step;
  const Pass pass{.batch = hypotheses,
                  .positions = 1,
                  .first_position = step.cache.length(),
                  .cache = &step.cache,
                  .projected_as = projected_as,
                  .memory = &memory,
                  .site = StackSite::decoder};
  stack_forward(decoder(), {step.tokens.data(), Shape{hypotheses, 1}}, pass, activations);
  unembed(decoder(), activations.unembedding_in(), logits, pass.projected_positions());
}

KeyValueCache EncoderDecoder::make_cache(std::int64_t hypotheses, std::int64_t capacity,
                                         CacheType type) const {
  return {architecture_.decoder(), hypotheses, capacity, type};
}

}  // namespace heed
