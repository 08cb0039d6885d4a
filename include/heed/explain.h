// Why a model says what it says. Layers, heads and positions count from 0; logits and their
// differences are natural. Several threads may ask about one model at once. All functions throw
// Error{invalid_argument} for a token, position or number of steps that makes no sense, and for
// texts as those of Model do.
//
//   for (const heed::LogitPart& part :
//        heed::attribute_logit(model, tokens, {.token = mary}, heed::AttributeBy::head)) { ... }
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/heed.h"

namespace heed {

// What one layer would predict at one position.
struct LayerPrediction {
  std::vector<std::int32_t> tokens;   // the likeliest first: `top` of them
  std::vector<double> probabilities;  // theirs
  double entropy = 0;                 // nats
  double divergence = 0;              // KL(model ‖ this layer), nats
};

// [layer][position], L + 1 rows of T: the stream before each block, then after the last one,
// through the final norm and the vocabulary projection (the logit lens; nostalgebraist 2020). The
// last row is the model.
std::vector<std::vector<LayerPrediction>> logit_lens(const Model& model,
                                                     std::span<const std::int32_t> tokens,
                                                     std::int64_t top = 5);

// A logit or, against another token's, a difference of two.
struct LogitOf {
  std::int32_t token = 0;
  std::optional<std::int32_t> against{};
  std::int64_t position = -1;  // that predicts; -1 is the last
};

enum class AttributeBy {
  component,  // embedding, position, each attention and each feed-forward layer
  head,
  neuron,
  source,  // heads by the position that they read
};

struct LogitPart {
  std::string name;  // "embed", "0_attn_out", "L3H7", "L3H7<4", "L2N17", "bias"
  double value = 0;
};

// Direct logit attribution, the final norm's scale held: the values sum to the logit, or to the
// difference of two. In the order of a pass.
std::vector<LogitPart> attribute_logit(const Model& model, std::span<const std::int32_t> tokens,
                                       const LogitOf& logit, AttributeBy by);

// Integrated gradients from embeddings of zero to the text, one number a token (Sundararajan, Taly
// and Yan 2017), with `steps` points of Gauss-Legendre quadrature.
struct TokenAttribution {
  std::vector<double> tokens;     // (T), up to the position that predicts; 0 behind it
  double logit = 0;               // with the text
  double baseline = 0;            // with embeddings of zero
  double completeness_error = 0;  // Σ tokens − (logit − baseline)
};
TokenAttribution attribute_tokens(const Model& model, std::span<const std::int32_t> tokens,
                                  const LogitOf& logit, std::int64_t steps = 64);

// Writes a model whose weights are easier to read and whose predictions are the same: norms folded
// into what reads them, means that the norms take away removed, values' biases folded. Other
// readers of GPT-2 directories will miss its lm_head.bias. Replaces a model that is there. Throws
// Error{input_output} where the directory cannot be written, and leaves what was there.
void save_processed(const Model& model, const std::string& directory);

}  // namespace heed
