// Rows of a cache, which may be quantised, to and from f32: a warp has a row. Memory limits it.
#include "kernels/cuda/attention_code.h"

namespace heed_cuda {
namespace {

constexpr int row_threads = 256;

struct CacheRow {
  int lane, b, s, h;
  int stored_at;  // position
  bool present;

  // Heads of a position lie side by side.
  HEED_DEVICE explicit CacheRow(const HeedCacheRows& o)
      : lane(static_cast<int>(threadIdx.x) % warp_lanes) {
    const long long row = first_item() / warp_lanes;
    h = static_cast<int>(row % o.heads);
    s = static_cast<int>(row / o.heads % o.positions);
    stored_at = s + repetition_of(o.repetition);
    b = static_cast<int>(row / o.heads / o.positions);
    present = b < o.batch;
  }
};

__global__ void __launch_bounds__(row_threads)
    store_rows(const __grid_constant__ HeedCacheRows operands) {
  const HeedCacheRows& o = operands;
  const CacheRow row(o);
  if (!row.present) return;
  const float* const from = row_of<float>(o.numbers, row.b, row.s, row.h);
  if (o.type == HEED_ROWS_F32) {
    float* const to = row_of<float>(o.rows, row.b, row.stored_at, row.h);
    for (int i = row.lane; i < o.head_size; i += warp_lanes) to[i] = from[i];
    return;
  }
  if (o.type == HEED_ROWS_BF16) {
    unsigned short* const to = row_of<unsigned short>(o.rows, row.b, row.stored_at, row.h);
    for (int i = row.lane; i < o.head_size; i += warp_lanes) {
      to[i] = static_cast<unsigned short>(bf16_bits(from[i]));
    }
    return;
  }
  bool finite = true;
  float largest = 0.0F;
  for (int i = row.lane; i < o.head_size; i += warp_lanes) {
    const float magnitude = fabsf(from[i]);
    finite = finite && magnitude < __uint_as_float(0x7F800000U);
    largest = fmaxf(largest, magnitude);
  }
  finite = __all_sync(whole_warp, finite ? 1 : 0) != 0;
  const float scale = warp_max(largest) / 127.0F;
  const bool zero = !finite || scale < __uint_as_float(0x00800000U);  // or denormal
  const float inverse = 1.0F / scale;
  signed char* const to = row_of<signed char>(o.rows, row.b, row.stored_at, row.h);
  for (int i = row.lane; i < o.head_size; i += warp_lanes) {
    to[i] = zero ? static_cast<signed char>(0)
                 : static_cast<signed char>(__float2int_rn(from[i] * inverse));
  }
  if (row.lane != 0) return;
  *row_of<float>(o.scales, row.b, row.stored_at, row.h) =
      zero ? (finite ? 0.0F : __uint_as_float(0x7FC00000U)) : scale;
}

__global__ void __launch_bounds__(row_threads)
    dequantise_rows(const __grid_constant__ HeedCacheRows operands) {
  const HeedCacheRows& o = operands;
  const CacheRow row(o);
  if (!row.present) return;
  float* const to = row_of<float>(o.numbers, row.b, row.s, row.h);
  if (o.type == HEED_ROWS_BF16) {
    const unsigned short* const from = row_of<unsigned short>(o.rows, row.b, row.s, row.h);
    for (int i = row.lane; i < o.head_size; i += warp_lanes) to[i] = bf16_value(from[i]);
    return;
  }
  const signed char* const from = row_of<signed char>(o.rows, row.b, row.s, row.h);
  const float scale = *row_of<float>(o.scales, row.b, row.s, row.h);
  for (int i = row.lane; i < o.head_size; i += warp_lanes) {
    to[i] = scale * static_cast<float>(from[i]);
  }
}

HeedCudaResult launch_rows(void (*kernel)(HeedCacheRows), const HeedCacheRows& operands) {
  const long long rows =
      static_cast<long long>(operands.batch) * operands.positions * operands.heads;
  return launch(kernel, blocks_for(rows * warp_lanes, row_threads), dim3(row_threads), 0, operands);
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_store_rows(const HeedCacheRows* operands) {
  return heed_cuda::launch_rows(heed_cuda::store_rows, *operands);
}

HeedCudaResult heed_cuda_dequantise_rows(const HeedCacheRows* operands) {
  return heed_cuda::launch_rows(heed_cuda::dequantise_rows, *operands);
}

}  // extern "C"
