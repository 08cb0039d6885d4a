#include "microscope/explain/weight_processing.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/threads.h"

namespace heed {
namespace {

GptConfig processed_config(const GptConfig& config) {
  GptConfig processed = config;
  processed.tied_unembedding = false;
  processed.unembedding_bias = config.has_bias || config.unembedding_bias;
  return processed;
}

Gpt copy_of(const Gpt& gpt) {
  Gpt copy(processed_config(gpt.config()));
  for (const auto& entry : copy.parameters().layout().entries()) {
    const View<float> to = copy.parameters().tensor(entry.name);
    if (entry.name == "lm_head.weight") {
      std::ranges::copy(gpt.parameters().unembedding().weight.span(), to.data());
    } else if (gpt.parameters().layout().find(entry.name) != nullptr) {
      std::ranges::copy(gpt.parameters().tensor(entry.name).span(), to.data());
    }
  }
  return copy;
}

// The parameters of a model by name; absent ones are empty.
class Tensors {
 public:
  explicit Tensors(Gpt& gpt) : parameters_(gpt.parameters()) {}

  View<float> operator()(const std::string& name) const {
    return parameters_.layout().find(name) == nullptr ? View<float>{} : parameters_.tensor(name);
  }
  View<float> block(std::int64_t layer, const char* part) const {
    return (*this)(fmt::format("h.{}.{}", layer, part));
  }

 private:
  GptParameters& parameters_;
};

// Subtracts from `count` elements, `stride` apart, their mean.
void centre(float* values, std::int64_t count, std::int64_t stride) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i * stride];
  const double mean = sum / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i * stride] = static_cast<float>(values[i * stride] - mean);
  }
}

void centre_rows(View<float> matrix) {
  parallel_ranges(matrix.extent(0), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      centre(&matrix(row, 0), matrix.extent(1), 1);
    }
  });
}

void centre_columns(View<float> matrix) {
  parallel_ranges(matrix.extent(1), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t column = begin; column < end; ++column) {
      centre(&matrix(0, column), matrix.extent(0), matrix.extent(1));
    }
  });
}

void centre_vector(View<float> vector) {
  if (vector.present()) centre(vector.data(), vector.extent(0), 1);
}

// bias (O) += weight (O, I)·x (I); absent x is zero.
void add_product(View<const float> weight, View<const float> x, View<float> bias) {
  if (!x.present() || !bias.present()) return;
  for (std::int64_t row = 0; row < weight.extent(0); ++row) {
    double sum = bias(row);
    for (std::int64_t i = 0; i < x.extent(0); ++i) {
      sum += static_cast<double>(weight(row, i)) * x(i);
    }
    bias(row) = static_cast<float>(sum);
  }
}

struct Norm {
  View<float> gain;
  View<float> bias;
};

// Folds a norm into the only matrix after it: weight (O, C) and its bias (O).
void fold_norm(const Norm& norm, View<float> weight, View<float> bias) {
  add_product(weight, norm.bias, bias);
  for (std::int64_t row = 0; row < weight.extent(0); ++row) {
    for (std::int64_t c = 0; c < weight.extent(1); ++c) weight(row, c) *= norm.gain(c);
  }
  centre_rows(weight);
  std::ranges::fill(norm.gain.span(), 1.0F);
  if (norm.bias.present()) std::ranges::fill(norm.bias.span(), 0.0F);
}

void fold_norms(const Tensors& tensors, std::int64_t layers) {
  for (std::int64_t l = 0; l < layers; ++l) {
    fold_norm({tensors.block(l, "ln_1.weight"), tensors.block(l, "ln_1.bias")},
              tensors.block(l, "attn.c_attn.weight"), tensors.block(l, "attn.c_attn.bias"));
    fold_norm({tensors.block(l, "ln_2.weight"), tensors.block(l, "ln_2.bias")},
              tensors.block(l, "mlp.c_fc.weight"), tensors.block(l, "mlp.c_fc.bias"));
  }
  fold_norm({tensors("ln_f.weight"), tensors("ln_f.bias")}, tensors("lm_head.weight"),
            tensors("lm_head.bias"));
}

void centre_writing_weights(const Tensors& tensors, std::int64_t layers) {
  centre_rows(tensors("wte.weight"));
  centre_rows(tensors("wpe.weight"));
  for (std::int64_t l = 0; l < layers; ++l) {
    centre_columns(tensors.block(l, "attn.c_proj.weight"));
    centre_vector(tensors.block(l, "attn.c_proj.bias"));
    centre_columns(tensors.block(l, "mlp.c_proj.weight"));
    centre_vector(tensors.block(l, "mlp.c_proj.bias"));
  }
}

void fold_value_biases(const Tensors& tensors, const GptConfig& config) {
  if (!config.has_bias) return;
  const std::int64_t a = config.attention_width();
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const View<float> value_bias = tensors.block(l, "attn.c_attn.bias").slice(0, 2 * a, 3 * a);
    add_product(tensors.block(l, "attn.c_proj.weight"), value_bias,
                tensors.block(l, "attn.c_proj.bias"));
    std::ranges::fill(value_bias.span(), 0.0F);
  }
}

}  // namespace

Gpt process_weights(const Gpt& gpt, const WeightProcessing& processing) {
  Gpt processed = copy_of(gpt);
  const GptConfig& config = processed.config();
  const Tensors tensors(processed);
  if (processing.fold_norms) fold_norms(tensors, config.layers);
  if (processing.centre_writing_weights) centre_writing_weights(tensors, config.layers);
  if (processing.centre_unembedding) {
    centre_columns(tensors("lm_head.weight"));
    centre_vector(tensors("lm_head.bias"));
  }
  if (processing.fold_value_biases) fold_value_biases(tensors, config);
  if (processing.fold_value_biases && processing.centre_writing_weights) {
    for (std::int64_t l = 0; l < config.layers; ++l) {
      centre_vector(tensors.block(l, "attn.c_proj.bias"));
    }
  }
  return processed;
}

}  // namespace heed
