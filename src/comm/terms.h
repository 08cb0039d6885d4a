// Terms of sums in half of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bf16.h"

namespace heed {

inline float widened(std::uint16_t bf16) { return bf16_to_f32(bf16); }
inline float widened(float value) { return value; }

// sums[i] = terms[0][i] + terms[1][i] + … in this order, where sums holds the terms of one of the
// members, whose own pointer is null.
template <class Term>
void add_terms(const Term* const* terms, std::size_t members, std::size_t count, float* sums) {
  constexpr std::size_t most = 1024;
  float total[most];
  const auto add = [&](const auto* from, std::size_t size, bool is_first) {
    if (is_first) {
      for (std::size_t i = 0; i < size; ++i) total[i] = widened(from[i]);
    } else {
      for (std::size_t i = 0; i < size; ++i) total[i] += widened(from[i]);
    }
  };
  for (std::size_t begin = 0; begin < count; begin += most) {
    const std::size_t size = count - begin < most ? count - begin : most;
    for (std::size_t r = 0; r < members; ++r) {
      if (terms[r] != nullptr) {
        add(terms[r] + begin, size, r == 0);
      } else {
        add(sums + begin, size, r == 0);
      }
    }
    for (std::size_t i = 0; i < size; ++i) sums[begin + i] = total[i];
  }
}

}  // namespace heed
