// Products of a few rows with panels of prepared weights.
#include "kernels/cuda/prepared_products.h"

#include "kernels/cuda/prepared_panels.h"
#include "kernels/cuda/tensor_cores.h"

namespace heed_cuda {

struct PanelOperands {
  HeedPanelProducts all;
  long long row_parts;  // blocks beside each other, of some rows each
};

namespace {

HEED_DEVICE bool is_aligned(const float* numbers) {
  return reinterpret_cast<unsigned long long>(numbers) % sizeof(float4) == 0;
}

// --- Rows of x in integers ---

HEED_DEVICE int warp_max_of_integers(int value) {
  for (int step = warp_lanes / 2; step > 0; step /= 2) {
    value = max(value, __shfl_xor_sync(whole_warp, value, step));
  }
  return value;
}

// A group of a row of x: HeedRowGroup, in every lane.
struct RowGroup {
  int quads[group_quads];
  float scale;
  int minus_sum, minus_first_sum;
  float minus_scaled_sum;
};

// The group whose number `lane` is x, but for its quads, with the numbers that the processor gets;
// returns the quad that the lane's number is in. Where a number is not finite, neither is the
// scale.
HEED_DEVICE int quantise(float x, int lane, RowGroup& to) {
  // as integers, magnitudes have the same order, and NaN is above infinity
  const float largest = __int_as_float(warp_max_of_integers(__float_as_int(fabsf(x))));
  int quantised = 0;
  if (largest == 0.0F) {
    to.scale = 0.0F;
  } else if (largest <= 3.402823466e38F) {
    to.scale = fmaxf(__fdiv_rn(largest, 127.0F), 0x1p-126F);
    quantised = __float2int_rn(__fmul_rn(x, __fdiv_rn(1.0F, to.scale)));
  } else {
    to.scale = __uint_as_float(0x7FC00000U);
  }
  int quad = (quantised & 0xFF) << (lane % 4 * 8);
  quad |= __shfl_xor_sync(whole_warp, quad, 1);
  quad |= __shfl_xor_sync(whole_warp, quad, 2);
  int half_sum = __dp4a(quad, 0x01010101, 0);
  half_sum += __shfl_xor_sync(whole_warp, half_sum, 4);
  half_sum += __shfl_xor_sync(whole_warp, half_sum, 8);
  const int other_sum = __shfl_xor_sync(whole_warp, half_sum, 16);
  to.minus_sum = -(half_sum + other_sum);
  to.minus_first_sum = -(lane < warp_lanes / 2 ? half_sum : other_sum);
  to.minus_scaled_sum = to.scale * static_cast<float>(to.minus_sum);
  return quad;
}

// A warp a group.
__global__ void quantise_groups(const HeedQuantisedRows operands) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const long long groups = operands.rows * operands.groups;
  for (long long item = first_item() / warp_lanes; item < groups;
       item += item_step() / warp_lanes) {
    const long long row = item / operands.groups;
    const long long input = item % operands.groups * group_inputs + lane;
    RowGroup group;
    const int quad = quantise(
        input < operands.inputs ? operands.x[row * operands.inputs + input] : 0.0F, lane, group);
    HeedRowGroup& to = operands.to[item];
    if (lane % 4 == 0) to.quantised[lane / 4] = quad;
    if (lane == 0) {
      to.scale = group.scale;
      to.minus_sum = group.minus_sum;
      to.minus_first_sum = group.minus_first_sum;
      to.minus_scaled_sum = group.minus_scaled_sum;
    }
  }
}

HEED_DEVICE RowGroup load_group(const HeedRowGroup* from) {
  const int4* const parts = reinterpret_cast<const int4*>(from);
  const int4 head = parts[0], low = parts[1], high = parts[2];
  return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w},
          __int_as_float(head.x),
          head.y,
          head.z,
          __int_as_float(head.w)};
}

HEED_DEVICE RowGroup quantised_group(float x, int lane) {
  RowGroup group;
  const int quad = quantise(x, lane, group);
  HEED_UNROLL for (int q = 0; q < group_quads; ++q) {
    group.quads[q] = __shfl_sync(whole_warp, quad, 4 * q);
  }
  return group;
}

// --- Products ---

constexpr int most_warps = 16;  // of a block

// Numbers of a block: which panel, from which row on.
struct BlockPlace {
  long long panel, first_row;
  int lane, warp, warps;

  HEED_DEVICE BlockPlace(const PanelOperands& operands, int rows)
      : panel(blockIdx.x / operands.row_parts),
        first_row(blockIdx.x % operands.row_parts * rows),
        lane(static_cast<int>(threadIdx.x) % warp_lanes),
        warp(static_cast<int>(threadIdx.x) / warp_lanes),
        warps(static_cast<int>(blockDim.x) / warp_lanes) {}
};

// out = bias + Σ over warps of sums (rows, 32), in their order.
template <int rows>
HEED_DEVICE void store_sums(const HeedPanelProducts& all, const BlockPlace& block,
                            long long first_row,
                            const float (&sums)[most_warps][rows][panel_outputs]) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * panel_outputs;
       i += static_cast<int>(blockDim.x)) {
    const int r = i / panel_outputs, o = i % panel_outputs;
    const long long row = first_row + r, output = block.panel * panel_outputs + o;
    if (row >= all.rows || output >= all.panels.outputs) continue;
    float sum = all.bias == nullptr ? 0.0F : all.bias[output];
    for (int w = 0; w < block.warps; ++w) sum += sums[w][r][o];
    all.out[row * all.out_stride + output] = sum;
  }
}

// sum += a group's integers times the scales of the weights and of x.
template <class Panel>
HEED_DEVICE void add_products(const int (&quads)[group_quads], const typename Panel::Scales& scales,
                              const RowGroup& x, float& sum) {
  constexpr int halves = Panel::Scales::halves, half_quads = group_quads / halves;
  HEED_UNROLL for (int half = 0; half < halves; ++half) {
    const int minus_sum = halves == 1 ? x.minus_sum
                          : half == 0 ? x.minus_first_sum
                                      : x.minus_sum - x.minus_first_sum;
    int dot = Panel::offset * minus_sum;
    HEED_UNROLL for (int q = half * half_quads; q < (half + 1) * half_quads; ++q) {
      dot = __dp4a(quads[q], x.quads[q], dot);
    }
    sum = fmaf(static_cast<float>(dot), scales.scale[half] * x.scale, sum);
    if constexpr (Panel::Scales::has_minima) {
      const float minus =
          halves == 1 ? x.minus_scaled_sum : x.scale * static_cast<float>(minus_sum);
      sum = fmaf(scales.minimum[half], minus, sum);
    }
  }
}

// A block a panel, whose warps share the groups; a single row is quantised on the way, which saves
// a launch that would take as long as a small panel. Limited by the panel's bytes for one row, for
// eight by them and by dot products of bytes about alike. The order of a row's sums depends on the
// weight's shape alone.
template <class Panel, int rows>
__global__ void __launch_bounds__(most_warps* warp_lanes)
    multiply_integers(const PanelOperands operands) {
  constexpr int together = Panel::together;
  const HeedPanelProducts& all = operands.all;
  const long long groups = all.panels.groups;
  const BlockPlace block(operands, rows);
  const unsigned* const integers = static_cast<const unsigned*>(all.panels.integers) +
                                   block.panel * groups * (Panel::bits * panel_outputs) +
                                   block.lane;
  const unsigned char* const scales = static_cast<const unsigned char*>(all.panels.scales) +
                                      block.panel * groups * Panel::Scales::group_bytes;
  const HeedRowGroup* x[rows];
  HEED_UNROLL for (int r = 0; r < rows; ++r) {
    x[r] =
        static_cast<const HeedRowGroup*>(all.x) + min(block.first_row + r, all.rows - 1) * groups;
  }
  float sums[rows] = {};
  for (long long first = static_cast<long long>(block.warp) * together; first < groups;
       first += static_cast<long long>(block.warps) * together) {
    unsigned words[together][Panel::bits] = {};
    typename Panel::Scales of_groups[together] = {};
    float of_row[together] = {};  // the lane's number of the single row
    HEED_UNROLL for (int i = 0; i < together; ++i) {
      if (first + i < groups) {
        load_words<Panel>(integers, first + i, words[i]);
        of_groups[i].load(scales, first + i, block.lane);
        const long long input = (first + i) * group_inputs + block.lane;
        if (rows == 1 && input < all.inputs) of_row[i] = static_cast<const float*>(all.x)[input];
      }
    }
    HEED_UNROLL for (int i = 0; i < together; ++i) {
      if (first + i < groups) {
        int quads[group_quads];
        HEED_UNROLL for (int q = 0; q < group_quads; ++q) {
          quads[q] = static_cast<int>(quad_of<Panel>(words[i], q));
        }
        HEED_UNROLL for (int r = 0; r < rows; ++r) {
          add_products<Panel>(
              quads, of_groups[i],
              rows == 1 ? quantised_group(of_row[i], block.lane) : load_group(x[r] + first + i),
              sums[r]);
        }
      }
    }
  }
  __shared__ float of_warps[most_warps][rows][panel_outputs];
  HEED_UNROLL for (int r = 0; r < rows; ++r) of_warps[block.warp][r][block.lane] = sums[r];
  __syncthreads();
  store_sums<rows>(all, block, block.first_row, of_warps);
}

constexpr int tile_rows = 8;  // columns of b

// Eight numbers of a row from `first` on, in bf16; zeros after its end.
HEED_DEVICE uint4 rounded_inputs(const float* row, long long first, long long inputs) {
  float values[8];
  if (first + 8 <= inputs && is_aligned(row)) {
    const float4 low = *reinterpret_cast<const float4*>(row + first);
    const float4 high = *reinterpret_cast<const float4*>(row + first + 4);
    return make_uint4(bf16_pair(low.x, low.y), bf16_pair(low.z, low.w), bf16_pair(high.x, high.y),
                      bf16_pair(high.z, high.w));
  }
  HEED_UNROLL for (int i = 0; i < 8; ++i) values[i] = first + i < inputs ? row[first + i] : 0.0F;
  return make_uint4(bf16_pair(values[0], values[1]), bf16_pair(values[2], values[3]),
                    bf16_pair(values[4], values[5]), bf16_pair(values[6], values[7]));
}

// Panels in bf16 by tensor cores, with the weights as the rows of a: up to 64 rows of x wait for
// the same bytes as one. Lane 4·set + member loads four outputs from 4·set on, of the pairs of
// inputs from 4·member on. Those are other rows and inputs of the fragments than their places say,
// which only matters where results are stored, because x's inputs are in the same places.
template <int tiles>
__global__ void __launch_bounds__(most_warps* warp_lanes)
    multiply_bf16(const PanelOperands operands) {
  constexpr int group_vectors = group_inputs / 8;  // of 16 bytes, in a row of x
  const HeedPanelProducts& all = operands.all;
  const long long groups = all.panels.groups;
  const BlockPlace block(operands, tiles * tile_rows);
  const int set = block.lane / 4, member = block.lane % 4;
  // (groups, 16 pairs, 8 vectors of four outputs)
  const uint4* const weights = static_cast<const uint4*>(all.panels.integers) +
                               block.panel * groups * 128 + 4 * member * 8 + set;
  long long x[tiles];  // the rows
  HEED_UNROLL for (int t = 0; t < tiles; ++t) {
    x[t] = min(block.first_row + t * tile_rows + set, all.rows - 1);
  }
  float sums[tiles][2][4] = {};
#if defined(__NVCC__)
#pragma unroll 2  // so that loads of several steps are under way
#endif
  for (long long group = block.warp; group < groups; group += block.warps) {
    uint4 pairs[4];
    HEED_UNROLL for (int i = 0; i < 4; ++i) pairs[i] = weights[group * 128 + i * 8];
    HEED_UNROLL for (int t = 0; t < tiles; ++t) {
      // Few rows are rounded on the way, which saves a launch.
      const uint4 inputs =
          tiles == 1
              ? rounded_inputs(static_cast<const float*>(all.x) + x[t] * all.inputs,
                               group * group_inputs + 8 * member, all.inputs)
              : static_cast<const uint4*>(all.x)[(x[t] * groups + group) * group_vectors + member];
      const unsigned b[2][2] = {{inputs.x, inputs.y}, {inputs.z, inputs.w}};
      HEED_UNROLL for (int step = 0; step < 2; ++step) {
        const uint4& even = pairs[2 * step];
        const uint4& odd = pairs[2 * step + 1];
        const unsigned first[4] = {even.x, even.y, odd.x, odd.y};
        const unsigned second[4] = {even.z, even.w, odd.z, odd.w};
        multiply_fragments(sums[t][0], first, b[step][0], b[step][1]);
        multiply_fragments(sums[t][1], second, b[step][0], b[step][1]);
      }
    }
  }
  __shared__ float of_warps[most_warps][tile_rows][panel_outputs];
  HEED_UNROLL for (int t = 0; t < tiles; ++t) {
    HEED_UNROLL for (int q = 0; q < 2; ++q) {
      HEED_UNROLL for (int i = 0; i < 4; ++i) {
        of_warps[block.warp][2 * member + i % 2][4 * set + 2 * q + i / 2] = sums[t][q][i];
      }
    }
    __syncthreads();
    store_sums<tile_rows>(all, block, block.first_row + t * tile_rows, of_warps);
    __syncthreads();
  }
}

using PanelKernel = void (*)(PanelOperands);

struct RowsOfKernel {
  PanelKernel kernel;
  int rows;
};

RowsOfKernel bf16_kernel(long long rows) {
  if (rows <= 8) return {multiply_bf16<1>, 8};
  if (rows <= 16) return {multiply_bf16<2>, 16};
  if (rows <= 32) return {multiply_bf16<4>, 32};
  return {multiply_bf16<8>, 64};
}

template <class Panel>
RowsOfKernel integer_kernel(long long rows) {
  if (rows == 1) return {multiply_integers<Panel, 1>, 1};
  if (rows <= 4) return {multiply_integers<Panel, 4>, 4};
  return {multiply_integers<Panel, 8>, 8};
}

// As many warps as have groups, but no more than fill a device; it depends on the weight's shape
// alone.
int warps_of(const HeedPanels& panels, int together) {
  constexpr long long many_panels = 8 * 132;
  const int most = panels.panels >= many_panels ? most_warps / 2 : most_warps;
  int warps = 1;
  while (warps < most && panels.groups > warps * together) warps *= 2;
  return warps;
}

HeedCudaResult launch_products(const HeedPanelProducts& operands, const RowsOfKernel& chosen,
                               int together) {
  const long long row_parts = (operands.rows + chosen.rows - 1) / chosen.rows;
  const int threads = warps_of(operands.panels, together) * warp_lanes;
  return launch(chosen.kernel, dim3(static_cast<unsigned>(operands.panels.panels * row_parts)),
                dim3(static_cast<unsigned>(threads)), 0, PanelOperands{operands, row_parts});
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_quantise_for_panels(const HeedQuantisedRows* operands) {
  using namespace heed_cuda;
  constexpr int threads = 128;
  return launch(quantise_groups,
                blocks_for(operands->rows * operands->groups * warp_lanes, threads), dim3(threads),
                0, *operands);
}

HeedCudaResult heed_cuda_panel_products(const HeedPanelProducts* operands) {
  using namespace heed_cuda;
  if (operands->panels.format == heed_panel_bf16) {
    return launch_products(*operands, bf16_kernel(operands->rows), 1);
  }
  return with_integer_panel(operands->panels.format, [&](auto panel) {
    using Panel = decltype(panel);
    return launch_products(*operands, integer_kernel<Panel>(operands->rows), Panel::together);
  });
}

}  // extern "C"
