// Products of prepared weights on an accelerator: of a few rows with the panels as they are, of
// many with weights that are restored for the product.
#include "kernels/cuda/prepared_products.h"

#include <algorithm>

#include "kernels/backends.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product_operands.h"
#include "kernels/operand_checks.h"
#include "kernels/prepared_weight.h"

namespace heed::kernels {
namespace {

using cuda::product_operands;
using cuda::Scratch;

static_assert(heed_panel_bf16 == static_cast<int>(WeightFormat::bf16) &&
              heed_panel_int4 == static_cast<int>(WeightFormat::int4) &&
              heed_panel_q6_k == static_cast<int>(WeightFormat::q6_k));

constexpr std::int64_t width = PreparedWeight::panel_outputs;

// Rows of sequences of up to this length read the panels directly.
constexpr std::int64_t few_rows = 64;

// Weights that are restored at once: large matrices, such as unembeddings, come in pieces.
constexpr std::int64_t restored_numbers = std::int64_t{1} << 26;

// Calls body(panels, first output) with the panels [begin, end) on the device, format by format.
template <class Body>
void for_each_run(const PreparedWeight& weight, std::int64_t begin, std::int64_t end, Body&& body) {
  const std::byte* const there = weight.on_accelerator();
  const std::byte* const here = weight.panel(0);
  for (const PreparedWeight::Part& part : weight.parts()) {
    const std::int64_t first = std::max(begin, part.first_panel);
    const std::int64_t last = std::min(end, part.first_panel + part.panels);
    if (first >= last) continue;
    body(HeedPanels{.integers = there + (weight.panel(first) - here),
                    .scales = there + (weight.scales(first) - here),
                    .panels = last - first,
                    .groups = weight.padded_inputs() / PreparedWeight::group,
                    .outputs = std::min(last * width, weight.outputs()) - first * width,
                    .format = static_cast<int>(part.format)},
         first * width);
  }
}

const float* after(const float* bias, std::int64_t count) {
  return bias == nullptr ? nullptr : bias + count;
}

// to (rows, columns), each row followed by zeros, = x in bf16.
void round_rows(View<const float> x, std::int64_t columns, std::uint16_t* to) {
  static const cuda::Function<HeedBf16Copy> round("bf16_copy");
  round({.from = x.data(),
         .to = to,
         .rows = x.extent(0),
         .columns = x.extent(1),
         .to_stride = columns});
}

void multiply_panels(View<const float> x, const PreparedWeight& weight, const float* bias,
                     View<float> out) {
  const std::int64_t rows = x.extent(0), groups = weight.padded_inputs() / PreparedWeight::group;
  const bool has_integers = holds_integers(weight.format());
  const bool is_prepared = rows > heed_panel_rows(static_cast<int>(weight.format()));
  const Scratch<HeedRowGroup> quantised(is_prepared && has_integers ? rows * groups : 0);
  const Scratch<std::uint16_t> rounded(is_prepared && !has_integers ? rows * weight.padded_inputs()
                                                                    : 0);
  const void* prepared = x.data();
  if (is_prepared && has_integers) {
    static const cuda::Function<HeedQuantisedRows> quantise("quantise_for_panels");
    quantise({.x = x.data(),
              .to = quantised.data(),
              .rows = rows,
              .inputs = x.extent(1),
              .groups = groups});
    prepared = quantised.data();
  } else if (is_prepared) {
    round_rows(x, weight.padded_inputs(), rounded.data());
    prepared = rounded.data();
  }
  static const cuda::Function<HeedPanelProducts> multiply("panel_products");
  for_each_run(weight, 0, weight.panels(), [&](const HeedPanels& panels, std::int64_t first) {
    multiply({.panels = panels,
              .x = prepared,
              .bias = after(bias, first),
              .out = out.data() + first,
              .rows = rows,
              .inputs = x.extent(1),
              .out_stride = out.extent(1)});
  });
}

// The product of rows of x (rows, x_stride) with restored weights, some panels at a time.
template <class Number>
void multiply_restored(const Number* x, std::int64_t x_stride, const PreparedWeight& weight,
                       const float* bias, View<float> out) {
  constexpr bool is_bf16 = sizeof(Number) == 2;
  const std::int64_t inputs = weight.padded_inputs();
  const std::int64_t at_once =
      std::clamp<std::int64_t>(restored_numbers / (width * inputs), 1, weight.panels());
  const Scratch<Number> restored(at_once * width * inputs);
  static const cuda::Function<HeedRestoredPanels> restore("restore_panels");
  static const cuda::Function<HeedProduct> multiply("product");
  for (std::int64_t begin = 0; begin < weight.panels(); begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, weight.panels()), first = begin * width;
    for_each_run(weight, begin, end, [&](const HeedPanels& panels, std::int64_t output) {
      restore({.panels = panels,
               .to = restored.data() + (output - first) * inputs,
               .is_bf16 = is_bf16});
    });
    // By columns: outᵀ (O, N) = W (O, I)·xᵀ (I, N).
    multiply({.a = restored.data(),
              .b = x,
              .d = out.data() + first,
              .bias = after(bias, first),
              .rows = std::min(end * width, weight.outputs()) - first,
              .columns = out.extent(0),
              .depth = weight.inputs(),
              .a_stride = inputs,
              .b_stride = x_stride,
              .d_stride = weight.outputs(),
              .transposes_a = 1,
              .transposes_b = 0,
              .operands = product_operands(is_bf16 ? Precision::bf16 : Precision::f32),
              .accumulates = 0});
  }
}

}  // namespace

void cuda::prepared_linear_forward(View<const float> x, const PreparedWeight& weight,
                                   View<const float> bias, View<float> out,
                                   std::int64_t positions) {
  checks::contiguous(x, {x.extent(0), weight.inputs()}, "x");
  checks::contiguous(out, {x.extent(0), weight.outputs()}, "out");
  if (bias.present()) checks::contiguous(bias, {weight.outputs()}, "bias");
  checks::positions(positions);
  const std::int64_t rows = x.extent(0);
  if (rows == 0 || weight.outputs() == 0) return;
  const bool has_integers = holds_integers(weight.format());
  const bool is_refused = has_integers && !integers_are_allowed(),
             is_step = positions == decoding_step;
  const std::int64_t length = positions == 0 ? rows : (is_step ? 1 : positions);
  // A step of decoding multiplies in integers, whether prompts are refused them or not.
  if (weight.inputs() == 0 || is_step || (length <= few_rows && !is_refused)) {
    return multiply_panels(x, weight, bias.data(), out);
  }
  if (is_refused) return multiply_restored(x.data(), x.extent(1), weight, bias.data(), out);
  const Scratch<std::uint16_t> rounded(rows * weight.padded_inputs());
  round_rows(x, weight.padded_inputs(), rounded.data());
  multiply_restored(rounded.data(), weight.padded_inputs(), weight, bias.data(), out);
}

}  // namespace heed::kernels
