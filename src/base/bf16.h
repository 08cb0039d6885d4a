// The number format bf16: the upper half of an f32.
#pragma once

#include <bit>
#include <cstdint>

namespace heed {

inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The nearest bf16, to even between two; not-a-number stays that.
inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const bool is_number = (bits & 0x7fffffffU) <= 0x7f800000U;
  return static_cast<std::uint16_t>((is_number ? rounded : bits | 0x400000U) >> 16);
}

}  // namespace heed
