// Activations, soft caps, dropout and sums, on the device.
#include "kernels/cuda/elementwise.h"

#include "kernels/backends.h"
#include "kernels/cuda/launch.h"
#include "kernels/dropout_hash.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

static_assert(static_cast<int>(Activation::gelu_tanh) == HEED_GELU_TANH &&
              static_cast<int>(Activation::gelu_erf) == HEED_GELU_ERF &&
              static_cast<int>(Activation::relu) == HEED_RELU &&
              static_cast<int>(Activation::silu) == HEED_SILU &&
              static_cast<int>(Activation::relu2) == HEED_RELU2 && activation_count == 5);

}  // namespace

void cuda::activation_forward(View<const float> x, Activation activation, View<float> out) {
  checks::same_shape(x, out, "x", "out");
  if (x.size() == 0) return;
  static const Function<HeedActivationOperands> launch("activation_forward");
  launch({.activation = static_cast<int>(activation),
          .count = x.size(),
          .x = x.data(),
          .out = out.data()});
}

void cuda::activation_backward(View<const float> x, Activation activation, View<const float> d_out,
                               View<float> d_x) {
  checks::same_shape(x, d_out, "x", "d_out");
  checks::same_shape(x, d_x, "x", "d_x");
  if (x.size() == 0) return;
  static const Function<HeedActivationOperands> launch("activation_backward");
  launch({.activation = static_cast<int>(activation),
          .count = x.size(),
          .x = x.data(),
          .d_out = d_out.data(),
          .out = d_x.data()});
}

void cuda::gated_activation_forward(View<const float> gate, View<const float> up,
                                    Activation activation, View<float> out) {
  checks::same_shape(gate, up, "gate", "up");
  checks::same_shape(gate, out, "gate", "out");
  if (gate.size() == 0) return;
  static const Function<HeedActivationOperands> launch("gated_activation_forward");
  launch({.activation = static_cast<int>(activation),
          .count = gate.size(),
          .x = gate.data(),
          .up = up.data(),
          .out = out.data()});
}

void cuda::gated_activation_backward(View<const float> gate, View<const float> up,
                                     Activation activation, View<const float> d_out,
                                     View<float> d_gate, View<float> d_up) {
  checks::gated_activation_backward(gate, up, d_out, d_gate, d_up);
  if (gate.size() == 0) return;
  static const Function<HeedActivationOperands> launch("gated_activation_backward");
  launch({.activation = static_cast<int>(activation),
          .count = gate.size(),
          .x = gate.data(),
          .up = up.data(),
          .d_out = d_out.data(),
          .out = d_gate.data(),
          .d_up = d_up.data()});
}

void cuda::soft_cap_forward(View<const float> x, float cap, View<float> out) {
  checks::soft_cap(cap);
  checks::same_shape(x, out, "x", "out");
  if (x.size() == 0) return;
  static const Function<HeedSoftCap> launch("soft_cap_forward");
  launch({.cap = cap, .count = x.size(), .x = x.data(), .out = out.data()});
}

void cuda::soft_cap_backward(View<const float> out, float cap, View<const float> d_out,
                             View<float> d_x) {
  checks::soft_cap(cap);
  checks::same_shape(out, d_out, "out", "d_out");
  checks::same_shape(out, d_x, "out", "d_x");
  if (out.size() == 0) return;
  static const Function<HeedSoftCap> launch("soft_cap_backward");
  launch(
      {.cap = cap, .count = out.size(), .x = out.data(), .d_out = d_out.data(), .out = d_x.data()});
}

void cuda::dropout(View<const float> x, const Dropout& dropout, View<float> out) {
  checks::rank(x, 2, "x");
  checks::same_shape(x, out, "x", "out");
  checks::dropout(dropout);
  if (x.size() == 0) return;
  static const Function<HeedDropout> launch("dropout");
  launch({.rows = x.extent(0),
          .columns = x.extent(1),
          .x = x.data(),
          .out = out.data(),
          .key = dropout.key,
          .first_column = dropout.first_column,
          .threshold = dropout_threshold(dropout.rate),
          .factor = 1.0F / (1.0F - dropout.rate)});
}

void cuda::add(View<const float> x, View<const float> y, View<float> out) {
  checks::same_shape(x, y, "x", "y");
  checks::same_shape(x, out, "x", "out");
  if (x.size() == 0) return;
  static const Function<HeedAdd> launch("add");
  launch({.count = x.size(), .x = x.data(), .y = y.data(), .out = out.data()});
}

}  // namespace heed::kernels
