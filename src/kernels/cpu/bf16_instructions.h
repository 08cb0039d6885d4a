// Common definitions of code with AVX-512 BF16 and AMX intrinsics. x86-64 only.
#pragma once

// GCC 12 warns about deliberately undefined operands in its own intrinsics (bug 105593).
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#ifndef __clang__
#pragma GCC diagnostic pop
#endif

#include <atomic>
#include <cstdint>

// Between HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS) and HWY_POP_ATTRIBUTES functions may use
// both.
#define HEED_BF16_INSTRUCTIONS \
  "avx,avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16"

namespace heed::kernels {

// The operand of _tile_loadconfig: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Must precede tile loads of data that was just stored: GCC 12 does not declare that _tile_loadd
// reads memory, so the compiler may move stores after it.
inline __attribute__((always_inline)) void finish_stores() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace heed::kernels
