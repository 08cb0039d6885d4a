// Explanations of predictions: logit lens, heads, logit attribution, integrated gradients, nearest
// words.
// Layers, heads and positions count from 0; logits are natural (in nats). Several threads may call
// these functions on one model at once. All functions throw Error{invalid_argument} for an invalid
// token, position or number of steps, and for texts that the functions of Model reject, and
// Error{unsupported} for a source and a model of one stack, and for none and an encoder-decoder.
//
//   for (const heed::LogitPart& part :
//        heed::attribute_logit(model, tokens, {.token = mary}, heed::AttributeBy::head)) { ... }
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention.h"
#include "heed/heed.h"
#include "heed/texts.h"

namespace heed {

// The prediction of one layer at one position.
struct LayerPrediction {
  std::vector<std::int32_t> tokens;   // the `top` most likely, in descending order
  std::vector<double> probabilities;  // theirs
  double entropy = 0;                 // nats
  double divergence = 0;              // KL(model ‖ this layer), nats
};

// The logit lens (nostalgebraist 2020): [layer][position], L + 1 rows of T, the residual stream
// before each block and after the last one, through the final norm and the unembedding. The last
// row is the model's own prediction. Of an encoder-decoder, the decoder's stream.
std::vector<std::vector<LayerPrediction>> logit_lens(const Model& model, const Texts& texts,
                                                     std::int64_t top = 5);

// Statistics of every head, layer by layer. A text longer than the context is split into windows.
// Of an encoder-decoder, the heads of a kind of attention: "encoder", "decoder" or "cross"; numbers
// that a kind has not are zero. Throws Error{invalid_argument} for another kind.
std::vector<HeadSummary> heads(const Model& model, const Texts& texts, std::string_view kind = {});

// A logit, or its difference to the logit of another token.
struct LogitOf {
  std::int32_t token = 0;
  std::optional<std::int32_t> against{};
  std::int64_t position = -1;  // the position that predicts; -1 is the last
};

enum class AttributeBy {
  component,  // embeddings, and each attention and feed-forward layer
  head,
  neuron,
  source,  // heads split by key position
};

struct LogitPart {
  std::string name;  // "embed", "0_attn_out", "L3H7", "L3H7<4", "L2N17", "bias"
  double value = 0;
};

// Direct logit attribution, with the final norm's scale held constant: the values sum to the logit
// or the difference of logits. In the order of a forward pass.
std::vector<LogitPart> attribute_logit(const Model& model, std::span<const std::int32_t> tokens,
                                       const LogitOf& logit, AttributeBy by);

// What integrated gradients compare the embeddings of a text with.
struct AttributionBaseline {
  enum class Kind {
    zero,
    mean,  // of the embeddings of all tokens of the vocabulary
    tokens,
  };
  Kind kind = Kind::zero;
  std::vector<std::int32_t> tokens{};  // of Kind::tokens: one for all positions, or one for each
};

struct IntegrationOptions {
  // Points of the quadrature between neighbouring powers of ten, and how many intervals may be
  // halved.
  std::int64_t steps = 16;
  AttributionBaseline baseline{};
};

// Integrated gradients (Sundararajan, Taly and Yan 2017) from a baseline, one number for each
// token, by Gauss-Legendre quadrature whose points are dense near the baseline. Throws
// Error{unsupported} where they miss logit − baseline by more than 5 %: take more steps, or another
// baseline.
struct TokenAttribution {
  std::vector<double> tokens;     // (T); 0 after the position that predicts
  double logit = 0;               // of the text
  double baseline = 0;            // of the baseline
  double completeness_error = 0;  // Σ tokens − (logit − baseline)
};
TokenAttribution attribute_tokens(const Model& model, std::span<const std::int32_t> tokens,
                                  const LogitOf& logit, const IntegrationOptions& options = {});

// A word of the vocabulary beside a vector.
struct NearWord {
  std::int32_t token = 0;
  double cosine = 0;  // 0 where the vector or the embedding is the mean of all embeddings
};

// The words whose embeddings have the largest cosines with a vector. The mean of all embeddings is
// taken off both: what all have in common would make every word near.
struct NearestWords {
  std::vector<NearWord> words;  // those that are nearer than chance, the nearest first
  NearWord best;                // the nearest of all
  // The largest cosine of any word with the vector's numbers in any of 39 random orders: a vector
  // that has nothing to do with the words has one that is nearer in one case of forty.
  double chance = 0;
};

// Of a position (-1 is the last), L + 2 of them: of the token's embedding, among the other words;
// then of the residual stream before each block and after the last one, among all words.
std::vector<NearestWords> nearest_words(const Model& model, std::span<const std::int32_t> tokens,
                                        std::int64_t position = -1, std::int64_t top = 6);

// Writes an equivalent model with processed weights, which are easier to interpret: norms folded
// into the matrices after them, weights centred where a norm removes the mean, value biases folded.
// Its lm_head.bias is not read by other loaders of GPT-2 directories. Replaces an existing model.
// Throws Error{input_output} if the directory cannot be written, leaving existing files unchanged.
void save_processed(const Model& model, const std::string& directory);

}  // namespace heed
