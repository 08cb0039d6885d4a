// Derivations of a feed-forward layer.
#include "engine/deriver.h"

#include <cmath>

#include "base/error.h"

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
  if (config_.block.feed_forward.activation == Activation::silu) {
    describe(gated ? "m_i = n_i · σ(n_i) · u_i" : "m_i = n_i · σ(n_i)",
             gated ? R"(m_i = n_i\,\sigma(n_i)\,u_i)" : R"(m_i = n_i\,\sigma(n_i))", "silu");
  } else if (config_.block.feed_forward.activation == Activation::relu) {
    describe("m_i = max(n_i, 0)", R"(m_i = \max(n_i, 0))", "relu");
  } else {
    describe("m_i = n_i · Φ(n_i)", R"(m_i = n_i\,\Phi(n_i))", "gelu");
  }
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

// The factor activation(x) / x of a neuron.
double Deriver::gate(double x) const {
  switch (config_.block.feed_forward.activation) {
    case Activation::relu: return x > 0 ? 1 : 0;
    case Activation::silu: return 1 / (1 + std::exp(-x));
    case Activation::gelu_erf: return 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh: break;
  }
  constexpr double root_two_over_pi = 0.7978845608028654;
  return 0.5 * (1 + std::tanh(root_two_over_pi * (x + 0.044715 * x * x * x)));
}

void Deriver::feed_forward_out() {
  const std::int64_t c = channel();
  describe("f_c = Σ_i m_i W_out[i,c] + b_c", R"(f_c = \sum_i m_i\, W_{out}[i,c] + b_c)", "sum");
  linear(block().feed_forward.post[element_.position], weights().down, c, "neuron");
  number(pass_.feed_forward_out(layer_)(element_.position, c), {element_.position, c});
}

}  // namespace heed
