// Derivations of a feed-forward layer.
#include "engine/deriver.h"

#include "base/error.h"
#include "kernels/kernels.h"

namespace heed {

void Deriver::neuron(const LinearWeights& matrix, View<const float> values, const char* letter,
                     const char* name) {
  require_index(config_.feed_forward(), "neuron");
  require(values.present(), ErrorCode::invalid_argument, "this model's neurons have no gate");
  derivation_.formula = fmt::format("{}_i = Σ_c x_c {}[c,i] + b_i", letter, name);
  derivation_.latex = fmt::format(R"({}_i = \sum_c x_c\, W_{{{}}}[c,i] + b_i)", letter, name + 2);
  derivation_.operation = "sum";
  linear(block().norm_2[element_.position], matrix, element_.index);
  number(values(element_.position, element_.index), {element_.position, element_.index});
}

void Deriver::neurons_post() {
  require_index(config_.feed_forward(), "neuron");
  const bool gated = config_.block.feed_forward.gated;
  const kernels::ActivationDescription& activation =
      kernels::description_of(config_.block.feed_forward.activation);
  derivation_.formula = fmt::format("m_i = {}{}", activation.formula, gated ? " · u_i" : "");
  derivation_.latex = fmt::format(R"(m_i = {}{})", activation.latex, gated ? R"(\,u_i)" : "");
  derivation_.operation = "activation";
  const double pre = block().feed_forward.pre(element_.position, element_.index);
  const double post = block().feed_forward.post(element_.position, element_.index);
  const bool edited = pass_.edits({PointKind::neurons_post, layer_});
  if (gated) {
    add("n · σ(n) · u", pre * gate(pre),
        block().feed_forward.linear(element_.position, element_.index));
  } else {
    add("pre · gate", pre, pre != 0 && !edited ? post / pre : gate(pre));
  }
  number(post, {element_.position, element_.index});
}

// The factor activation(x) / x of a neuron; at 0 the limit of it, which is the derivative.
double Deriver::gate(double x) const {
  const Activation activation = config_.block.feed_forward.activation;
  const float pre = static_cast<float>(x), one = 1;
  float result = 0;
  const View<const float> given(&pre, {1});
  const View<float> out(&result, {1});
  if (pre == 0) {
    kernels::activation_backward(given, activation, {&one, {1}}, out);
    return result;
  }
  kernels::activation_forward(given, activation, out);
  return static_cast<double>(result) / static_cast<double>(pre);
}

void Deriver::feed_forward_out() {
  const std::int64_t c = channel();
  describe("f_c = Σ_i m_i W_out[i,c] + b_c", R"(f_c = \sum_i m_i\, W_{out}[i,c] + b_c)", "sum");
  linear(block().feed_forward.post[element_.position], weights().down, c, "neuron");
  number(pass_.rows({PointKind::feed_forward_out, layer_})(element_.position, c),
         {element_.position, c});
}

}  // namespace heed
