// Products of rows of x with panels of integers. x is quantised to int8 as well, so that a
// group of 32 inputs is summed exactly in integers; scales are applied in f32 once per group.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/product_kernels.h"
#include "kernels/cpu/quantised_products.h"
#include "kernels/instruction_sets.h"

#define HWY_WANT_AVX3_DL  // a target that Highway excludes by default
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantised_products.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/quantised_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// 32 numbers. Where one is not finite, neither is the scale: all products of the group get NaN.
HWY_INLINE void QuantiseGroup(const float* x, RowGroup& to) {
  const Floats d;
  const Ints di;
  const std::int64_t lanes = IntLanes();
  // magnitudes as integers, whose order is the same and has NaN above infinity
  Int largest_bits = hn::Zero(di);
  for (std::int64_t i = 0; i < kGroup; i += lanes) {
    const Int bits = hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i)));
    largest_bits = hn::Max(largest_bits, bits);
  }
  const float largest = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, largest_bits)));
  if (largest == 0.0F || !std::isfinite(largest)) {
    const float scale = largest == 0.0F ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    to = {.scale = scale, .minus_scaled_sum = scale};
    return;
  }
  to.scale = std::max(largest / 127.0F, smallest_scale);
  const Float inverse = hn::Set(d, 1.0F / to.scale);
  constexpr std::int64_t half = kGroup / 2;
  static_assert(hn::MaxLanes(di) <= half);
  Int sum = hn::Zero(di), first_sum = sum;
  for (std::int64_t i = 0; i < kGroup; i += lanes) {
    const Int quantised = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse));
    if (i == half) first_sum = sum;
    sum = hn::Add(sum, quantised);
    const hn::Rebind<std::int8_t, Ints> di8;
    hn::StoreU(hn::DemoteTo(di8, quantised), di8, to.quantised + i);
  }
  to.minus_sum = -hn::GetLane(hn::SumOfLanes(di, sum));
  to.minus_first_sum = -hn::GetLane(hn::SumOfLanes(di, first_sum));
  to.minus_scaled_sum = to.scale * static_cast<float>(to.minus_sum);
}

// Whether this instruction set multiplies rows by these weights faster than f32: x86-64 was
// measured.
bool HasFastBytes(WeightFormat format) {
  if (HEED_DOT_PRODUCTS_OF_BYTES && HWY_ARCH_X86) return true;
  return HWY_TARGET == HWY_AVX2 &&
         with_integer_panel(format, []<class Panel>(Panel) { return Panel::bits < 8; });
}

void QuantiseRows(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared) {
  auto* to = reinterpret_cast<RowGroup*>(prepared);
  for (std::int64_t row = 0; row < rows; ++row, x += shape.inputs) {
    std::int64_t i = 0;
    for (; i + kGroup <= shape.inputs; i += kGroup) QuantiseGroup(x + i, *to++);
    if (i < shape.inputs) {
      float last[kGroup] = {};
      std::copy(x + i, x + shape.inputs, last);
      QuantiseGroup(last, *to++);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(MultiplyIntegers);
HWY_EXPORT(QuantiseRows);
HWY_EXPORT(HasFastBytes);

namespace {

std::atomic<bool>& permission() {
  static std::atomic<bool> allowed = true;
  return allowed;
}

}  // namespace

// Tiles leave x more exact, and are faster.
bool multiplies_long_rows_in_integers(WeightFormat format) {
  return holds_integers(format) && integers_are_allowed() && !has_tile_products() &&
         (has_avx_vnni() || HWY_DYNAMIC_DISPATCH(HasFastBytes)(format));
}

void allow_integers_for_long_rows() { permission() = true; }
void refuse_integers_for_long_rows() { permission() = false; }

bool integers_are_allowed() { return permission(); }

void quantise_rows(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared) {
  HWY_DYNAMIC_DISPATCH(QuantiseRows)(x, rows, shape, prepared);
}

void multiply_integers(WeightFormat format, const float* prepared, std::int64_t rows,
                       const PanelRun& run, const PanelShape& shape, float* sums) {
  if (has_avx_vnni()) return avx_vnni_multiply_integers(format, prepared, rows, run, shape, sums);
  if (has_neon_dot_products()) {
    return neon_multiply_integers(format, prepared, rows, run, shape, sums);
  }
  HWY_DYNAMIC_DISPATCH(MultiplyIntegers)(format, prepared, rows, run, shape, sums);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
