// Shared by products with integer weights and their dequantisation, once per instruction set.

#if defined(HEED_KERNELS_CPU_QUANTISED_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CPU_QUANTISED_PANELS_INL_H_
#undef HEED_KERNELS_CPU_QUANTISED_PANELS_INL_H_
#else
#define HEED_KERNELS_CPU_QUANTISED_PANELS_INL_H_
#endif

#include "kernels/cpu/quantised_format.h"
#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

using Ints = hn::RebindToSigned<Floats>;
using Int = hn::Vec<Ints>;
using Bytes = hn::Repartition<std::uint8_t, Ints>;

constexpr std::int64_t kGroup = PreparedWeight::group;
constexpr std::int64_t kWidth = PreparedWeight::panel_outputs;
constexpr std::int64_t kQuads = kGroup / 4;      // of inputs, in a group
constexpr std::int64_t kQuadBytes = 4 * kWidth;  // of a panel's four inputs, or eight halves

HWY_INLINE std::int64_t IntLanes() { return static_cast<std::int64_t>(hn::Lanes(Ints())); }

// 32-bit lanes of four weights each, of consecutive outputs.
HWY_INLINE Int LoadQuads(const std::uint8_t* from) {
  return hn::BitCast(Ints(), hn::LoadU(Bytes(), from));
}

HWY_INLINE Int LowHalves(Int bytes) { return hn::And(bytes, hn::Set(Ints(), 0x0F0F0F0F)); }
HWY_INLINE Int HighHalves(Int bytes) { return LowHalves(hn::ShiftRight<4>(bytes)); }

HWY_INLINE Float LoadScales(Floats d, const std::uint16_t* from) {
  const hn::RebindToUnsigned<Floats> du;
  const hn::Rebind<std::uint16_t, Floats> du16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(du16, from))));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif
