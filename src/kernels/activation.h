// The activations of feed-forward layers: the table that kernels, files, settings, derivations and
// the page follow.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace heed::kernels {

enum class Activation { gelu_tanh, gelu_erf, relu, silu, relu2 };

// A row of the table. Values and derivatives are in kernels/cpu/activation-inl.h, those of the
// reference in kernels/reference/elementwise.cc.
struct ActivationDescription {
  Activation activation;
  std::array<std::string_view, 5> names;  // in configs of Hugging Face; the first is written
  const char* label;                      // as papers call it
  const char* formula;                    // of a neuron n_i
  const char* latex;
};

// In the order of the enumeration.
// clang-format off
inline constexpr ActivationDescription activations[] = {
    // 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))
    {Activation::gelu_tanh, {"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"},
     "GELU", "n_i · Φ(n_i)", R"(n_i\,\Phi(n_i))"},
    // 0.5·x·(1 + erf(x/√2))
    {Activation::gelu_erf, {"gelu", "gelu_python"}, "GELU", "n_i · Φ(n_i)", R"(n_i\,\Phi(n_i))"},
    {Activation::relu, {"relu"}, "ReLU", "max(n_i, 0)", R"(\max(n_i, 0))"},
    // x / (1 + e^−x)
    {Activation::silu, {"silu", "swish"}, "SiLU", "n_i · σ(n_i)", R"(n_i\,\sigma(n_i))"},
    // So et al. 2021
    {Activation::relu2, {"relu2"}, "ReLU²", "max(n_i, 0)²", R"(\max(n_i, 0)^2)"},
};
// clang-format on
inline constexpr std::size_t activation_count = std::size(activations);

constexpr const ActivationDescription& description_of(Activation activation) {
  return activations[static_cast<std::size_t>(activation)];
}

}  // namespace heed::kernels
