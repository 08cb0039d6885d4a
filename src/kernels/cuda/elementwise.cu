#include "kernels/cuda/elementwise.h"

#include "kernels/cuda/for_elements.h"
#include "kernels/dropout_bits.h"

namespace heed_cuda {
namespace {

// σ(x) = 1/(1 + e^−x) and σ'(x) = σ(x)·(1 − σ(x)), without overflow and without cancellation.
struct Logistic {
  float value, derivative;

  HEED_DEVICE explicit Logistic(float x) {
    const float power = expf(-fabsf(x)), share = 1.0F / (1.0F + power);
    value = x >= 0.0F ? share : power * share;
    derivative = power * share * share;
  }
};

constexpr float twice_tanh_scale = 1.5957691216057308F;  // 2·√(2/π)
constexpr float cubic = 0.044715F;
constexpr float density_scale = 0.3989422804014327F;  // 1/√(2π)
constexpr float inverse_sqrt2 = 0.70710678118654752F;

// x·y, where an x without bounds does not count beside a y of 0.
HEED_DEVICE float vanishing_product(float x, float y) { return y == 0.0F ? 0.0F : x * y; }

// The value at x in y, and its derivative in slope.
template <int activation>
HEED_DEVICE void activate(float x, float& y, float& slope) {
  if constexpr (activation == HEED_GELU_TANH) {
    // ½·x·(1 + tanh u) = x·σ(2u), u = √(2/π)·(x + 0.044715·x³)
    const float square = x * x;
    const Logistic logistic(x * fmaf(square, cubic * twice_tanh_scale, twice_tanh_scale));
    y = vanishing_product(x, logistic.value);
    const float inner = x * fmaf(square, 3 * cubic * twice_tanh_scale, twice_tanh_scale);
    slope = logistic.value + vanishing_product(inner, logistic.derivative);
  } else if constexpr (activation == HEED_GELU_ERF) {
    const float distribution = 0.5F * erfcf(-x * inverse_sqrt2);
    y = vanishing_product(x, distribution);
    slope = distribution + vanishing_product(x * density_scale, expf(-0.5F * x * x));
  } else if constexpr (activation == HEED_RELU) {
    y = x <= 0.0F ? 0.0F : x;  // NaN stays
    slope = x > 0.0F ? 1.0F : 0.0F;
  } else if constexpr (activation == HEED_SILU) {
    const Logistic logistic(x);
    y = vanishing_product(x, logistic.value);
    slope = logistic.value + vanishing_product(x, logistic.derivative);
  } else {
    const float positive = x <= 0.0F ? 0.0F : x;
    y = positive * positive;
    slope = positive + positive;
  }
}

template <int activation>
struct Activate {
  static constexpr int inputs = 1, outputs = 1;
  HEED_DEVICE void operator()(const float* in, float* out) const {
    float slope = 0;
    activate<activation>(in[0], out[0], slope);
  }
};

template <int activation>
struct Differentiate {  // x, d_out
  static constexpr int inputs = 2, outputs = 1;
  HEED_DEVICE void operator()(const float* in, float* out) const {
    float value = 0, slope = 0;
    activate<activation>(in[0], value, slope);
    out[0] = in[1] * slope;
  }
};

template <int activation>
struct ActivateGate {  // gate, up
  static constexpr int inputs = 2, outputs = 1;
  HEED_DEVICE void operator()(const float* in, float* out) const {
    float value = 0, slope = 0;
    activate<activation>(in[0], value, slope);
    out[0] = value * in[1];
  }
};

template <int activation>
struct DifferentiateGate {  // gate, up, d_out; d_gate, d_up
  static constexpr int inputs = 3, outputs = 2;
  HEED_DEVICE void operator()(const float* in, float* out) const {
    float value = 0, slope = 0;
    activate<activation>(in[0], value, slope);
    out[0] = in[2] * in[1] * slope;
    out[1] = in[2] * value;
  }
};

template <template <int> class Operation, int activation>
HeedCudaResult launch_activation(const HeedActivationOperands& operands) {
  using Chosen = Operation<activation>;
  Elements<Chosen> elements{};
  elements.count = operands.count;
  const float* const in[] = {operands.x, operands.up, operands.d_out};
  int n = 0;
  for (const float* const one : in) {
    if (one != nullptr) elements.in[n++] = one;
  }
  elements.out[0] = operands.out;
  elements.out[1] = operands.d_up;
  return launch_elements(elements);
}

template <template <int> class Operation>
HeedCudaResult with_activation(const HeedActivationOperands& operands) {
  switch (operands.activation) {
    case HEED_GELU_TANH: return launch_activation<Operation, HEED_GELU_TANH>(operands);
    case HEED_GELU_ERF: return launch_activation<Operation, HEED_GELU_ERF>(operands);
    case HEED_RELU: return launch_activation<Operation, HEED_RELU>(operands);
    case HEED_SILU: return launch_activation<Operation, HEED_SILU>(operands);
    case HEED_RELU2: return launch_activation<Operation, HEED_RELU2>(operands);
    default: return "an unknown activation";
  }
}

struct Cap {
  static constexpr int inputs = 1, outputs = 1;
  float cap;
  HEED_DEVICE void operator()(const float* in, float* out) const {
    out[0] = cap * tanhf(in[0] / cap);
  }
};

struct Uncap {  // what Cap gave, d_out
  static constexpr int inputs = 2, outputs = 1;
  float cap;
  HEED_DEVICE void operator()(const float* in, float* out) const {
    const float share = in[0] / cap;
    out[0] = in[1] * fmaf(-share, share, 1.0F);
  }
};

struct Add {
  static constexpr int inputs = 2, outputs = 1;
  HEED_DEVICE void operator()(const float* in, float* out) const { out[0] = in[0] + in[1]; }
};

// One hash a row and one an element: some twenty operations of integers for 8 bytes.
template <int group>
__global__ void __launch_bounds__(element_threads) drop(const HeedDropout operands) {
  const long long width = operands.columns / group;
  for (long long i = first_item(); i < operands.rows * width; i += item_step()) {
    const long long row = i / width;
    const auto column = static_cast<unsigned>(i - row * width) * group;
    const unsigned row_key = heed::kernels::dropout_row_key(operands.key, operands.first_column,
                                                            static_cast<uint64_t>(row));
    float values[group];
    if constexpr (group == 4) {
      load_quad(operands.x + 4 * i, values);
    } else {
      values[0] = operands.x[i];
    }
    for (int j = 0; j < group; ++j) {
      const bool kept = heed::kernels::dropout_bits(row_key, column + j) >= operands.threshold;
      values[j] = kept ? values[j] * operands.factor : 0.0F;
    }
    if constexpr (group == 4) {
      store_quad(values, operands.out + 4 * i);
    } else {
      operands.out[i] = values[0];
    }
  }
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_activation_forward(const HeedActivationOperands* operands) {
  return heed_cuda::with_activation<heed_cuda::Activate>(*operands);
}

HeedCudaResult heed_cuda_activation_backward(const HeedActivationOperands* operands) {
  return heed_cuda::with_activation<heed_cuda::Differentiate>(*operands);
}

HeedCudaResult heed_cuda_gated_activation_forward(const HeedActivationOperands* operands) {
  return heed_cuda::with_activation<heed_cuda::ActivateGate>(*operands);
}

HeedCudaResult heed_cuda_gated_activation_backward(const HeedActivationOperands* operands) {
  return heed_cuda::with_activation<heed_cuda::DifferentiateGate>(*operands);
}

HeedCudaResult heed_cuda_soft_cap_forward(const HeedSoftCap* operands) {
  heed_cuda::Elements<heed_cuda::Cap> elements{};
  elements.operation.cap = operands->cap;
  elements.count = operands->count;
  elements.in[0] = operands->x;
  elements.out[0] = operands->out;
  return heed_cuda::launch_elements(elements);
}

HeedCudaResult heed_cuda_soft_cap_backward(const HeedSoftCap* operands) {
  heed_cuda::Elements<heed_cuda::Uncap> elements{};
  elements.operation.cap = operands->cap;
  elements.count = operands->count;
  elements.in[0] = operands->x;
  elements.in[1] = operands->d_out;
  elements.out[0] = operands->out;
  return heed_cuda::launch_elements(elements);
}

HeedCudaResult heed_cuda_add(const HeedAdd* operands) {
  heed_cuda::Elements<heed_cuda::Add> elements{};
  elements.count = operands->count;
  elements.in[0] = operands->x;
  elements.in[1] = operands->y;
  elements.out[0] = operands->out;
  return heed_cuda::launch_elements(elements);
}

HeedCudaResult heed_cuda_dropout(const HeedDropout* operands) {
  using namespace heed_cuda;
  const long long elements = operands->rows * operands->columns;
  if (operands->columns % 4 == 0 && is_aligned(operands->x) && is_aligned(operands->out)) {
    return launch(drop<4>, blocks_for(elements / 4, element_threads), element_threads, 0,
                  *operands);
  }
  return launch(drop<1>, blocks_for(elements, element_threads), element_threads, 0, *operands);
}

}  // extern "C"
