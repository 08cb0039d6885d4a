// Gradients of a logit, or of the difference of two, at any point of the pass, and attribution
// patching and integrated gradients computed from them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/explain.h"
#include "microscope/explain/logit_direction.h"
#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

// The differentiated metric: the question's logit at `position` of the text, of two of the target
// (−1: the last).
struct LogitMetric {
  LogitQuestion question;
  std::int64_t position = -1;
};

struct LogitGradients {
  double metric = 0;
  std::vector<Point> points;
  std::vector<Tensor<float>> values;     // of each point, shaped as listed at PointKind with B = 1
  std::vector<Tensor<float>> gradients;  // ∂metric/∂values
};

// One forward and one backward pass; `editor` (or null) edits the forward pass. With quantised
// weights, backward multiplies by the dequantised ones, in f32. Throws Error{invalid_argument} for
// a text that does not fit the model, a token or position that does not exist, and
// Error{unsupported} for a point before one where the editor does more than add.
LogitGradients differentiate_logit(const Transformer& model, const Texts& texts,
                                   const LogitMetric& metric, std::vector<Point> points,
                                   Editor* editor = nullptr);
inline LogitGradients differentiate_logit(const Transformer& model,
                                          std::span<const std::int32_t> tokens,
                                          const LogitMetric& metric, std::vector<Point> points,
                                          Editor* editor = nullptr) {
  return differentiate_logit(model, Texts{.source = {}, .target = {tokens.begin(), tokens.end()}},
                             metric, std::move(points), editor);
}

// First-order estimate of the change of the metric when a value of the corrupted pass is replaced
// by that of the clean pass: (clean − corrupted) · ∂metric/∂corrupted, summed over the last
// dimension (Nanda, Attribution Patching: Activation Patching At Industrial Scale, 2023). Two
// forward passes and one backward pass for all points together.
struct AttributionPatching {
  double clean_metric = 0;
  double corrupted_metric = 0;
  std::vector<Point> points;
  std::vector<Tensor<float>> effects;  // (1, T) of the stream and neurons, (1, T, H) of q, k, v, z,
                                       // (1, H, T) of the pattern
};
// The texts have the same numbers of tokens. Throws what differentiate_logit() throws.
AttributionPatching estimate_patching(const Transformer& model, const Texts& clean,
                                      const Texts& corrupted, const LogitMetric& metric,
                                      const std::vector<Point>& points);

struct IntegratedGradients {
  std::vector<double> tokens;  // (T): the attribution of each token's embedding
  double metric = 0;           // of the text
  double baseline = 0;         // with the embeddings of the baseline and unchanged positions
  // Σ tokens − (metric − baseline): the error of the quadrature.
  double completeness_error = 0;
};

// Σ_c (x_c − b_c) · ∫₀¹ ∂metric/∂x_c (b + α·(x − b)) dα for each token's embedding x and its
// baseline b (Sundararajan, Taly and Yan, Axiomatic Attribution for Deep Networks, 2017), by
// Gauss-Legendre quadrature on intervals between powers of ten, down to where the metric is that of
// α = 0: where nothing but embeddings feeds the stream (no position table, no biases), norms undo α
// until it is near zero, and most of the integral lies there. What an interval's tokens miss of the
// change of the metric is known: the worst is halved, at most options.steps times, until all miss
// no more than a thousandth. Throws as above, Error{invalid_argument} for fewer than one step and
// for a baseline of another length, and Error{unsupported} where the attributions miss their sum,
// metric − baseline, by more than 5 %: they are not an attribution then.
IntegratedGradients integrate_gradients(const Transformer& model,
                                        std::span<const std::int32_t> tokens,
                                        const LogitMetric& metric,
                                        const IntegrationOptions& options = {});

}  // namespace heed
