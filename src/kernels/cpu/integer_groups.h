// A group of integers of one output, and its place in a panel.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/quantised_format.h"

namespace heed::kernels {

// 32 unsigned integers in the bytes of quads.
using GroupQuads = std::array<std::uint32_t, PreparedWeight::group / 4>;

// The part of every byte that a mask selects, at position `to`. Bits stay in their bytes.
constexpr std::uint32_t bits_of(std::uint32_t quad, int from, std::uint32_t mask, int to) {
  return (quad >> from & mask * 0x01010101U) << to;
}

// `group`: where the output's first quad is, in the integers of a group of the panel.
template <class Panel>
void place_integers(const GroupQuads& quads, std::uint8_t* group) {
  constexpr std::int64_t quad_bytes = 4 * panel_width;
  const auto put = [&](std::uint32_t quad) {
    std::memcpy(group, &quad, sizeof(quad));
    group += quad_bytes;
  };
  constexpr int bits = Panel::bits;
  if constexpr (bits == 8) {
    for (const std::uint32_t quad : quads) put(quad);
  }
  if constexpr (bits >= 4 && bits < 8) {
    for (std::size_t q = 0; q < quads.size(); q += 2) {
      put(bits_of(quads[q], 0, 15, 0) | bits_of(quads[q + 1], 0, 15, 4));
    }
  }
  if constexpr (bits == 2 || bits == 3 || bits == 6) {
    constexpr int from = bits == 6 ? 4 : 0;
    for (std::size_t q = 0; q < quads.size(); q += 4) {
      put(bits_of(quads[q], from, 3, 0) | bits_of(quads[q + 1], from, 3, 2) |
          bits_of(quads[q + 2], from, 3, 4) | bits_of(quads[q + 3], from, 3, 6));
    }
  }
  if constexpr (bits == 3 || bits == 5) {
    std::uint32_t all = 0;
    for (std::size_t q = 0; q < quads.size(); ++q) {
      all |= bits_of(quads[q], bits - 1, 1, static_cast<int>(q));
    }
    put(all);
  }
}

}  // namespace heed::kernels
