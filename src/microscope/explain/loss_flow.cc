#include "microscope/explain/loss_flow.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/explain/logit_direction.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// Keeps the length of each position's gradient at every one of `points`.
class NormProbe final : public Probe {
 public:
  NormProbe(const std::vector<Point>& points, std::int64_t positions)
      : points_(points), norms_(Shape{std::ssize(points), positions}) {}

  bool wants(const Point&) const override { return false; }
  void observe(const Point&, View<const float>) override {}
  bool wants_gradient(const Point& point) const override {
    return std::ranges::find(points_, point) != points_.end();
  }
  void observe_gradient(const Point& point, View<const float> values) override {
    const auto row = std::ranges::find(points_, point) - points_.begin();
    for (std::int64_t t = 0; t < values.extent(1); ++t) {
      double sum = 0;
      for (const float value : values[0][t].span()) sum += double{value} * value;
      norms_.view()(row, t) = static_cast<float>(std::sqrt(sum));
    }
  }

  Tensor<float> take() { return std::move(norms_); }

 private:
  const std::vector<Point>& points_;
  Tensor<float> norms_;
};

// The gradient (C) of −log softmax(logits)[token] with respect to the final norm's output, from
// that with respect to the logits: the mean of the unembedding's rows under the predicted
// distribution, minus the token's own row.
std::vector<float> loss_gradient(const Transformer& gpt, std::span<const float> d_logits) {
  const LinearWeights& unembedding = gpt.parameters().unembedding();
  std::vector<double> gradient(static_cast<std::size_t>(gpt.specification().channels));
  for (std::size_t v = 0; v < d_logits.size(); ++v) {
    const auto row = kernels::multiplied_row(unembedding, static_cast<std::int64_t>(v));
    for (std::size_t c = 0; c < gradient.size(); ++c) gradient[c] += double{d_logits[v]} * row[c];
  }
  return {gradient.begin(), gradient.end()};
}

}  // namespace

LossFlow loss_flow(const Transformer& gpt, std::span<const std::int32_t> tokens, std::int32_t token,
                   std::int64_t position, StopFlag stop) {
  require_predicts_next(gpt.specification(), "a flow of the loss");
  require_sums_to_logits(gpt.specification(), "a flow of the loss");
  const StackSpecification& config = gpt.specification();
  require_text_fits(config, tokens);
  LogitQuestion{.token = token}.validate(config);
  const std::int64_t positions = std::ssize(tokens);
  position = position_in_text(position, positions);

  LossFlow flow{.points = stream_points(gpt.architecture())};
  NormProbe probe(flow.points, positions);
  const View<const std::int32_t> batch(tokens.data(), {1, positions});
  const Pass pass{.sequences = {1, positions}, .probe = &probe};
  const StackActivations activations(config, 1, positions, Keep::every_block);
  gpt.forward(batch, pass, activations);
  Tensor<float> logits(Shape{1, config.vocabulary_size});
  gpt.project(activations.final_norm().slice(0, position, position + 1), logits);
  Tensor<float> loss(Shape{1});
  kernels::cross_entropy_forward_backward(logits, View<const std::int32_t>(&token, {1}), 1.0F,
                                          loss);
  flow.loss = loss[0];

  require(!stop_requested(stop), ErrorCode::interrupted, "stopped before the backward pass");
  const ActivationGradients buffers(config, positions);
  std::ranges::fill(buffers.norm.span(), 0.0F);
  std::ranges::copy(loss_gradient(gpt, logits.span()), &buffers.norm(position, 0));
  gpt.backward(batch, pass, activations, buffers, nullptr);
  flow.norms = probe.take();
  return flow;
}

}  // namespace heed
