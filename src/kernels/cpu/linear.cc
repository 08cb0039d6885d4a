// y = x·Wᵀ + b: a matrix product for many rows; for a few, as in decoding, dot products that read
// each weight once, at memory bandwidth.
#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/cpu/dot_products.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/cpu/scratch.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// sums += Σ over rows of `vectors` adjacent vectors of x, so that memory is read in
// runs of several cache lines.
template <int vectors>
void AddSumsOfRows(const float* x, std::int64_t rows, std::int64_t columns, float* sums) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  Float even[vectors], odd[vectors];
  Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA { even[v] = odd[v] = hn::Zero(d); });
  std::int64_t n = 0;
  for (; n + 2 <= rows; n += 2, x += 2 * columns) {
    Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
      even[v] = hn::Add(even[v], hn::LoadU(d, x + v * lanes));
      odd[v] = hn::Add(odd[v], hn::LoadU(d, x + columns + v * lanes));
    });
  }
  Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
    if (n < rows) even[v] = hn::Add(even[v], hn::LoadU(d, x + v * lanes));
    float* const sum = sums + v * lanes;
    hn::StoreU(hn::Add(hn::LoadU(d, sum), hn::Add(even[v], odd[v])), d, sum);
  });
}

// sums (columns from begin to end) += Σ over rows of x.
void AddColumnSums(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t begin,
                   std::int64_t end, float* sums) {
  const Floats d;
  constexpr int together = 4;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t column = begin;
  for (; column + together * lanes <= end; column += together * lanes) {
    AddSumsOfRows<together>(x + column, rows, columns, sums + column);
  }
  for (; column + lanes <= end; column += lanes) {
    AddSumsOfRows<1>(x + column, rows, columns, sums + column);
  }
  for (; column < end; ++column) {
    float even = 0, odd = 0;
    for (std::int64_t n = 0; n < rows; ++n) (n % 2 == 0 ? even : odd) += x[n * columns + column];
    sums[column] += even + odd;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(AddColumnSums);

namespace {

// Up to this many rows dot products are about as fast as a matrix product, or faster (measured at 1
// to 32 rows of 768 and 3,072).
constexpr std::int64_t few_rows = 32;

// Rows of x that dot products take together: passes of 3 and of 6 rows fill them, and a block of
// their inputs stays in the second-level cache.
constexpr std::int64_t rows_together = 72;

// Rows of x whose blocks are copied before they are multiplied.
constexpr std::int64_t rows_copied = 4 * rows_together;

// out = x·Wᵀ + bias by dot products.
void multiply_few_rows(View<const float> x, const LinearParameters<float>& parameters,
                       View<float> out) {
  const std::int64_t rows = x.extent(0), inputs = x.extent(1), outputs = out.extent(1);
  const bool in_blocks = rows > rows_at_memory_speed && inputs > inputs_together;
  const float* from = x.data();
  if (in_blocks) {
    float* const blocks = scratch(Scratch::shared, static_cast<std::size_t>(rows * inputs));
    parallel_items((rows + rows_together - 1) / rows_together, [&](std::int64_t item) {
      const std::int64_t row = item * rows_together;
      x_blocks(x.data() + row * inputs, std::min(rows_together, rows - row), inputs,
               blocks + row * inputs);
    });
    from = blocks;
  }
  const std::int64_t grain = std::max<std::int64_t>(32768 / std::max<std::int64_t>(inputs, 1), 4);
  const std::int64_t unit = rows > rows_at_memory_speed ? weights_together : 4;
  parallel_shares(outputs, grain, unit, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < rows; row += rows_together) {
      dot_products(std::min(rows_together, rows - row),
                   {.x = from + row * inputs,
                    .x_row = inputs,
                    .x_in_blocks = in_blocks,
                    .weight = parameters.weight.data(),
                    .weight_row = inputs,
                    .inputs = inputs,
                    .bias = parameters.bias.data(),
                    .outputs = outputs,
                    .out = out.data() + row * outputs},
                   begin, end);
    }
  });
}

void multiply_by_weight(View<const float> x, const LinearParameters<float>& parameters,
                        View<float> out, std::int64_t positions) {
  if (parameters.prepared != nullptr) {
    return cpu::prepared_linear_forward(x, *parameters.prepared, parameters.bias, out, positions);
  }
  const std::int64_t rows = x.extent(0), inputs = x.extent(1), outputs = out.extent(1);
  const std::int64_t length = positions == 0 ? rows : (positions == decoding_step ? 1 : positions);
  if (rows == 0 || outputs == 0) return;
  if (inputs == 0 || (length <= few_rows && parameters.precision == Precision::f32)) {
    const std::int64_t at_once = inputs > inputs_together ? rows_copied : rows;
    for (std::int64_t row = 0; row < rows; row += at_once) {
      const std::int64_t end = std::min(row + at_once, rows);
      multiply_few_rows(x.slice(0, row, end), parameters, out.slice(0, row, end));
    }
    return;
  }
  multiply({.a = {.data = x.data(), .stride = inputs},
            .b = {.data = parameters.weight.data(), .stride = inputs, .transposed = true},
            .packed_b = parameters.packed,
            .c = out.data(),
            .rows = rows,
            .columns = outputs,
            .inner = inputs,
            .initial = parameters.bias.data(),
            .precision = parameters.precision});
}

}  // namespace

void cpu::linear_forward(View<const float> x, const LinearParameters<float>& parameters,
                         View<float> out, std::int64_t positions) {
  checks::linear(x, parameters.weight, out, parameters.bias, "x", "out");
  checks::positions(positions);
  multiply_by_weight(x, parameters, out, positions);
  if (parameters.soft_cap > 0) soft_cap_forward(out, parameters.soft_cap, out);
}

// out = x·Wᵀ: d_x = d_out·W
void cpu::linear_backward_input(View<const float> weight, View<const float> d_out, View<float> d_x,
                                Precision precision) {
  checks::linear(d_x, weight, d_out, View<const float>{}, "d_x", "d_out");
  const std::int64_t rows = d_x.extent(0), inputs = d_x.extent(1), outputs = d_out.extent(1);
  if (d_x.size() == 0) return;
  multiply({.a = {.data = d_out.data(), .stride = outputs},
            .b = {.data = weight.data(), .stride = inputs},
            .c = d_x.data(),
            .rows = rows,
            .columns = inputs,
            .inner = outputs,
            .precision = precision});
}

// out = x·Wᵀ + bias: d_W += d_outᵀ·x, d_bias += Σ over rows of d_out
void cpu::linear_backward_parameters(View<const float> x, View<const float> d_out,
                                     const LinearGradients<float>& gradients, Precision precision) {
  if (!gradients.weight.present()) return;
  checks::linear(x, gradients.weight, d_out, gradients.bias, "x", "d_out");
  const std::int64_t rows = x.extent(0), inputs = x.extent(1), outputs = d_out.extent(1);
  if (rows == 0 || outputs == 0) return;
  if (inputs > 0) {
    multiply({.a = {.data = d_out.data(), .stride = outputs, .transposed = true},
              .b = {.data = x.data(), .stride = inputs},
              .c = gradients.weight.data(),
              .rows = outputs,
              .columns = inputs,
              .inner = rows,
              .initial = gradients.weight.data(),
              .initial_stride = inputs,
              .precision = precision});
  }
  if (!gradients.bias.present()) return;
  const std::int64_t lines = (outputs + 15) / 16;  // cache lines of sums, each one thread's own
  parallel_ranges(lines, std::max<std::int64_t>(4096 / rows, 1),
                  [&](std::int64_t begin, std::int64_t end) {
                    HWY_DYNAMIC_DISPATCH(AddColumnSums)
                    (d_out.data(), rows, outputs, begin * 16, std::min(end * 16, outputs),
                     gradients.bias.data());
                  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
