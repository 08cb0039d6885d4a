// What an allocation really takes.
#pragma once

#include <cstddef>

namespace heed {

// Bytes that allocate_memory(bytes) takes: large blocks are whole pages.
std::size_t allocated_bytes(std::size_t bytes);

// An upper bound for estimates, of any number of bytes: of large blocks half a huge page more, of
// others what aligns them.
constexpr double max_allocated_bytes(double bytes) {
  constexpr double half_huge_page = 1 << 20, small = 128;
  return bytes + (bytes < half_huge_page ? small : half_huge_page);
}

}  // namespace heed
