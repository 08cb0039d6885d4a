#include "microscope/explain/loss_flow.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "microscope/explain/logit_direction.h"
#include "microscope/traces/point_names.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// Keeps the length of each position's gradient at the points of a flow.
class NormProbe final : public Probe {
 public:
  explicit NormProbe(LossFlow& flow) : flow_(flow) {}

  bool wants(const Point&) const override { return false; }
  void observe(const Point&, View<const float>) override {}
  bool wants_gradient(const Point& point) const override {
    const std::vector<Point>& points = of(point).points;
    return std::ranges::find(points, point) != points.end();
  }
  void observe_gradient(const Point& point, View<const float> values) override {
    LossFlow::OfStack& stack = of(point);
    const auto row = std::ranges::find(stack.points, point) - stack.points.begin();
    for (std::int64_t t = 0; t < values.extent(1); ++t) {
      double sum = 0;
      for (const float value : values[0][t].span()) sum += double{value} * value;
      stack.norms.view()(row, t) = static_cast<float>(std::sqrt(sum));
    }
  }

 private:
  LossFlow::OfStack& of(const Point& point) const {
    return point.site == StackSite::encoder ? flow_.stacks.front() : flow_.stacks.back();
  }

  LossFlow& flow_;
};

}  // namespace

LossFlow loss_flow(const RecordedPass& pass, std::int32_t token, std::int64_t position,
                   StopFlag stop) {
  const Architecture& architecture = pass.architecture();
  if (!architecture.is_encoder_decoder()) {
    require_predicts_next(architecture.decoder(), "a flow of the loss");
    require_sums_to_logits(architecture.decoder(), "a flow of the loss");
  }
  LogitQuestion{.token = token}.validate(architecture.decoder());
  position = position_in_text(position, pass.positions());
  require(!stop_requested(stop), ErrorCode::interrupted, "stopped before the backward pass");

  LossFlow flow;
  const auto add = [&](StackSite site) {
    std::vector<Point> points = stream_points(architecture, site);
    Tensor<float> norms(Shape{std::ssize(points), pass.positions(site)});
    flow.stacks.push_back({site, std::move(points), std::move(norms)});
  };
  if (architecture.is_encoder_decoder()) {
    add(StackSite::encoder);
    add(StackSite::decoder);
  } else {
    add(StackSite::only);
  }

  // ∂(−log softmax(logits)[token])/∂logits: the predicted probabilities, and −1 at the token.
  std::vector<double> gradient = pass.next_probabilities(position);
  flow.loss = -std::log(gradient[static_cast<std::size_t>(token)]);
  gradient[static_cast<std::size_t>(token)] -= 1;
  GradientTarget target;
  for (std::size_t v = 0; v < gradient.size(); ++v) {
    target.logits.push_back({position, static_cast<std::int32_t>(v), gradient[v]});
  }
  NormProbe probe(flow);
  pass.backward(target, probe);
  return flow;
}

}  // namespace heed
