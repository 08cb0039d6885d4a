// Rounding to whole units.
#pragma once

#include <cstdint>

namespace heed::kernels {

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline std::int64_t round_up(std::int64_t a, std::int64_t unit) {
  return divide_up(a, unit) * unit;
}

}  // namespace heed::kernels
