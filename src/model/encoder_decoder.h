// The original Transformer (Vaswani et al. 2017) and its kin: an encoder, whose positions attend to
// each other in both directions, and a decoder that attends to itself, causally, and to the
// encoder's result.
#pragma once

#include <optional>
#include <vector>

#include "model/cache.h"
#include "model/stack.h"
#include "model/vocabulary.h"

namespace heed {

// Sequences of different lengths, one below the other: sequence b is
// tokens[row_starts[b], row_starts[b + 1]).
struct TokenRows {
  std::span<const std::int32_t> tokens;      // (N)
  std::span<const std::int64_t> row_starts;  // (B + 1)

  std::int64_t count() const { return std::ssize(row_starts) - 1; }  // B
  std::int64_t rows() const { return std::ssize(tokens); }           // N
};

// Pairs to learn from: the decoder reads `target` and predicts `next`.
struct PairBatch {
  TokenRows source;
  TokenRows target;
  std::span<const std::int32_t> next;  // (N of target): the token after each, or ignored_target
};

// Everything that training or evaluation of pairs needs; grows to the largest batch that it meets.
class PairBuffers {
 public:
  PairBuffers(const Architecture& architecture, Keep keep);

  GptActivations& encoder() { return encoder_; }
  GptActivations& decoder() { return decoder_; }
  VocabularyLoss& loss() { return loss_; }
  // Of each row of the last batch's targets, 0 where ignored.
  std::span<const float> losses() const { return losses_; }

  // Bytes of batches of so many rows.
  static std::int64_t bytes_needed(const Architecture& architecture, Keep keep,
                                   std::int64_t source_rows, std::int64_t target_rows);

 private:
  friend class EncoderDecoder;
  void resize(std::int64_t source_rows, std::int64_t target_rows);

  Architecture architecture_;
  bool has_gradients_;
  GptActivations encoder_;
  GptActivations decoder_;
  std::optional<GptActivationGradients> encoder_gradients_;
  std::optional<GptActivationGradients> decoder_gradients_;
  std::vector<float> memory_gradient_;  // (M, C)
  std::vector<float> losses_;           // (N)
  VocabularyLoss loss_;
};

// What decoders attend to, once it is encoded: keys and values of every source in every layer,
// projected once.
struct EncodedSources {
  Tensor<float> rows;  // (M, C), the encoder's end
  std::vector<std::int64_t> row_starts;
  std::vector<KeyValueCache> caches;

  std::int64_t count() const { return std::ssize(caches); }
};

class EncoderDecoder {
 public:
  // Parameters are zero, or not there yet (ArenaMemory::reserved).
  explicit EncoderDecoder(const Architecture& architecture,
                          ArenaMemory memory = ArenaMemory::whole);

  const Architecture& architecture() const { return architecture_; }
  // The only part of a description that may change after construction.
  void set_dropout(float embedding, float attention, float residual);
  GptParameters& parameters() { return parameters_; }
  const GptParameters& parameters() const { return parameters_; }

  Stack encoder() const {
    return {architecture_.encoder(), parameters_.encoder(), encoder_sinusoids_};
  }
  Stack decoder() const {
    return {architecture_.decoder(), parameters_.stack(), decoder_sinusoids_};
  }

  // Both stacks, as the passes say; `decoder_pass` needs no memory yet, and gets the encoder's end.
  // Fills both activations.
  void forward(View<const std::int32_t> source, const Pass& encoder_pass,
               const GptActivations& encoder_activations, View<const std::int32_t> target,
               const Pass& decoder_pass, const GptActivations& decoder_activations) const;

  // The summed loss of predicting `next` after each position of `target`.
  LossSum loss(const PairBatch& batch, PairBuffers& buffers, Probe* probe = nullptr) const;

  // Forward and backward; scale · gradient of the summed loss accumulates in `gradients`.
  struct Step {
    float scale = 1.0F;
    DropoutPlan dropout{};
    Probe* probe = nullptr;
    Editor* editor = nullptr;  // of values and gradients; see backward_sees_edit()
    // Of a batch that is a part of another: the rows before it on either side.
    std::int64_t first_source_row = 0;
    std::int64_t first_target_row = 0;
  };
  LossSum loss_and_gradients(const PairBatch& batch, const Step& step, PairBuffers& buffers,
                             GptGradients& gradients) const;

  // Encodes sources and projects what decoders attend to, in caches of a type. Each source's
  // numbers are the same beside any others.
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
  void decode(const DecodeStep& step, GptActivations& activations, View<float> logits) const;

  // Room for `hypotheses` sequences of up to `capacity` tokens.
  KeyValueCache make_cache(std::int64_t hypotheses, std::int64_t capacity, CacheType type) const;

 private:
  Architecture architecture_;
  GptParameters parameters_;
  Tensor<float> encoder_sinusoids_;
  Tensor<float> decoder_sinusoids_;
};

}  // namespace heed
