// The loops of measure_peak that need intrinsics beyond Highway. Each runs on the calling thread
// and returns a value that depends on all of its work, so that the compiler cannot remove it.
#pragma once

namespace heed::kernels {

// Sixteen dot products of pairs of whole vectors an iteration.
float bf16_dot_product_loop(long iterations, float factor);
double bf16_dot_product_flops();  // of an iteration

// Six products of 16 x 32 by 32 x 16 tiles an iteration.
float bf16_tile_product_loop(long iterations, float factor);
inline constexpr double bf16_tile_product_flops = 6.0 * 2.0 * 16.0 * 32.0 * 16.0;

}  // namespace heed::kernels
