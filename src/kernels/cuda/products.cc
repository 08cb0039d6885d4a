// y = x·Wᵀ + b and its backward on an accelerator: matrix products for many rows, a kernel that
// reads each weight once for a few.
#include "kernels/cuda/products.h"

#include <algorithm>
#include <optional>

#include "kernels/backends.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product_operands.h"
#include "kernels/operand_checks.h"
#include "kernels/prepared_weight.h"

namespace heed::kernels {
namespace {

using cuda::product_operands;
using cuda::Scratch;

// Rows of sequences of up to this length, as on the processor, read the weight once for some of
// them; in bf16 as well, where a product of more rows first copies the weight.
constexpr std::int64_t few_rows = 32;

// A copy of a matrix in bf16, each row followed by zeros up to a multiple of `unit` numbers.
class RoundedCopy {
 public:
  RoundedCopy(const View<const float>& matrix, std::int64_t unit)
      : stride_((matrix.extent(1) + unit - 1) / unit * unit), copy_(matrix.extent(0) * stride_) {
    static const cuda::Function<HeedBf16Copy> round("bf16_copy");
    round({.from = matrix.data(),
           .to = copy_.data(),
           .rows = matrix.extent(0),
           .columns = matrix.extent(1),
           .to_stride = stride_});
  }

  const void* data() const { return copy_.data(); }
  std::int64_t stride() const { return stride_; }

 private:
  std::int64_t stride_;
  Scratch<std::uint16_t> copy_;
};

// A factor of a product: a matrix in f32, or a copy in bf16, whose rows lie so far apart that
// tensor cores take them.
class Factor {
 public:
  Factor(const View<const float>& matrix, Precision precision)
      : data_(matrix.data()), stride_(matrix.extent(1)) {
    if (precision != Precision::bf16) return;
    copy_.emplace(matrix, 8);
    data_ = copy_->data();
    stride_ = copy_->stride();
  }

  const void* data() const { return data_; }
  std::int64_t stride() const { return stride_; }

 private:
  std::optional<RoundedCopy> copy_;
  const void* data_;
  std::int64_t stride_;
};

void multiply(const HeedProduct& product) {
  static const cuda::Function<HeedProduct> launch("product");
  launch(product);
}

void multiply_few_rows(View<const float> x, const LinearParameters<float>& parameters,
                       View<float> out) {
  const std::int64_t rows = x.extent(0), inputs = x.extent(1), outputs = out.extent(1);
  if (parameters.precision == Precision::bf16 && inputs > 0) {
    std::optional<RoundedCopy> rounded;
    if (rows > heed_rounded_rows) rounded.emplace(x, 32);
    static const cuda::Function<HeedRoundedProducts> multiply_rounded("rounded_products");
    return multiply_rounded({.x = rounded ? rounded->data() : x.data(),
                             .weight = parameters.weight.data(),
                             .bias = parameters.bias.data(),
                             .out = out.data(),
                             .rows = rows,
                             .inputs = inputs,
                             .outputs = outputs,
                             .x_stride = rounded ? rounded->stride() : inputs});
  }
  static const cuda::Function<HeedDotProducts> dot_products("dot_products");
  dot_products({.x = x.data(),
                .weight = parameters.weight.data(),
                .bias = parameters.bias.data(),
                .out = out.data(),
                .rows = rows,
                .inputs = inputs,
                .outputs = outputs});
}

void multiply_by_weight(View<const float> x, const LinearParameters<float>& parameters,
                        View<float> out, std::int64_t positions) {
  const std::int64_t rows = x.extent(0), inputs = x.extent(1), outputs = out.extent(1);
  if (rows == 0 || outputs == 0) return;
  const std::int64_t length = positions == 0 ? rows : (positions == decoding_step ? 1 : positions);
  if (inputs == 0 || length <= few_rows) return multiply_few_rows(x, parameters, out);
  const Factor weight(parameters.weight, parameters.precision), factor(x, parameters.precision);
  // By columns: outᵀ (O, N) = W (O, I)·xᵀ (I, N). cuBLASLt's algorithm, and so the order of sums,
  // depends on N: rows of long sequences may have other bits beside other rows.
  multiply({.a = weight.data(),
            .b = factor.data(),
            .d = out.data(),
            .bias = parameters.bias.data(),
            .rows = outputs,
            .columns = rows,
            .depth = inputs,
            .a_stride = weight.stride(),
            .b_stride = factor.stride(),
            .d_stride = outputs,
            .transposes_a = 1,
            .transposes_b = 0,
            .operands = product_operands(parameters.precision),
            .accumulates = 0});
}

// sums (O) += Σ over rows of x (N, O).
void add_column_sums(View<const float> x, View<float> sums) {
  constexpr std::int64_t wanted_blocks = 1024, least_rows = 64, tile = 32;
  const std::int64_t rows = x.extent(0), columns = x.extent(1);
  const std::int64_t tiles = (columns + tile - 1) / tile;
  const std::int64_t slices =
      std::clamp<std::int64_t>(std::min(wanted_blocks / tiles, rows / least_rows), 1, 256);
  static const cuda::Function<HeedColumnSums> launch("column_sums");
  const Scratch<float> partial(slices == 1 ? 0 : slices * columns);
  launch({.x = x.data(),
          .partial = partial.data(),
          .sums = sums.data(),
          .rows = rows,
          .columns = columns,
          .slices = slices});
}

}  // namespace

void cuda::linear_forward(View<const float> x, const LinearParameters<float>& parameters,
                          View<float> out, std::int64_t positions) {
  checks::linear(x, parameters.weight, out, parameters.bias, "x", "out");
  checks::positions(positions);
  if (parameters.prepared != nullptr) {
    cuda::prepared_linear_forward(x, *parameters.prepared, parameters.bias, out, positions);
  } else {
    multiply_by_weight(x, parameters, out, positions);
  }
  if (parameters.soft_cap > 0) cuda::soft_cap_forward(out, parameters.soft_cap, out);
}

// out = x·Wᵀ: d_x = d_out·W
void cuda::linear_backward_input(View<const float> weight, View<const float> d_out, View<float> d_x,
                                 Precision precision) {
  checks::linear(d_x, weight, d_out, View<const float>{}, "d_x", "d_out");
  const std::int64_t rows = d_x.extent(0), inputs = d_x.extent(1), outputs = d_out.extent(1);
  if (d_x.size() == 0) return;
  if (outputs == 0) return clear_bytes(d_x.data(), d_x.span().size_bytes());
  const Factor weights(weight, precision), gradient(d_out, precision);
  // By columns: d_xᵀ (I, N) = Wᵀ (I, O)·d_outᵀ (O, N).
  multiply({.a = weights.data(),
            .b = gradient.data(),
            .d = d_x.data(),
            .bias = nullptr,
            .rows = inputs,
            .columns = rows,
            .depth = outputs,
            .a_stride = weights.stride(),
            .b_stride = gradient.stride(),
            .d_stride = inputs,
            .transposes_a = 0,
            .transposes_b = 0,
            .operands = product_operands(precision),
            .accumulates = 0});
}

// out = x·Wᵀ + bias: d_W += d_outᵀ·x, d_bias += Σ over rows of d_out
void cuda::linear_backward_parameters(View<const float> x, View<const float> d_out,
                                      const LinearGradients<float>& gradients,
                                      Precision precision) {
  if (!gradients.weight.present()) return;
  checks::linear(x, gradients.weight, d_out, gradients.bias, "x", "d_out");
  const std::int64_t rows = x.extent(0), inputs = x.extent(1), outputs = d_out.extent(1);
  if (rows == 0 || outputs == 0) return;
  if (inputs > 0) {
    const Factor factor(x, precision), gradient(d_out, precision);
    // By columns: d_Wᵀ (I, O) += xᵀ (I, N)·d_out (N, O).
    multiply({.a = factor.data(),
              .b = gradient.data(),
              .d = gradients.weight.data(),
              .bias = nullptr,
              .rows = inputs,
              .columns = outputs,
              .depth = rows,
              .a_stride = factor.stride(),
              .b_stride = gradient.stride(),
              .d_stride = inputs,
              .transposes_a = 0,
              .transposes_b = 1,
              .operands = product_operands(precision),
              .accumulates = 1});
  }
  if (gradients.bias.present()) add_column_sums(d_out, gradients.bias);
}

}  // namespace heed::kernels
