// Products of a few rows with panels of prepared weights, and panels restored for products of many.
#include "kernels/cuda/prepared_products.h"

#include "kernels/cuda/tensor_cores.h"

namespace heed_cuda {

struct PanelOperands {
  HeedPanelProducts all;
  long long row_parts;  // blocks beside each other, of some rows each
};

namespace {

constexpr int group_inputs = 32;
constexpr int group_quads = group_inputs / 4;  // words of four inputs each
constexpr int panel_outputs = warp_lanes;      // lane = output

HEED_DEVICE float value_of_bf16(unsigned bits) { return __uint_as_float(bits << 16); }

// Of a finite f16: its exponent has another bias, which a product corrects for denormal ones too.
HEED_DEVICE float value_of_f16(unsigned short bits) {
  const float magnitude = __uint_as_float((bits & 0x7FFFU) << 13) * 0x1p112F;
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

HEED_DEVICE bool is_aligned(const float* numbers) {
  return reinterpret_cast<unsigned long long>(numbers) % sizeof(float4) == 0;
}

HEED_DEVICE unsigned short half_at(const unsigned char* array, int output) {
  return reinterpret_cast<const unsigned short*>(array)[output];
}

// --- Scales of an output in a group, as kernels/cpu/quantised_format.h lays them out ---

template <int halves_, bool has_minima_>
struct GroupScales {
  static constexpr int halves = halves_;
  static constexpr bool has_minima = has_minima_;
  float scale[halves];
  float minimum[halves];  // where there are minima
};

struct Bf16Scales : GroupScales<1, false> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    scale[0] = value_of_bf16(half_at(scales + group * 64, output));
  }
  static constexpr long long group_bytes = 64;
};

struct F16Scales : GroupScales<1, false> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    scale[0] = value_of_f16(half_at(scales + group * 64, output));
  }
  static constexpr long long group_bytes = 64;
};

struct F16ScalesAndMinima : GroupScales<1, true> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    scale[0] = value_of_f16(half_at(scales + group * 128, output));
    minimum[0] = value_of_f16(half_at(scales + group * 128 + 64, output));
  }
  static constexpr long long group_bytes = 128;
};

// Super-blocks of eight groups: `factors` arrays of f16, then two arrays of bytes a group.
template <int factors>
struct FactoredBlock {
  static constexpr long long bytes = factors * 64 + 8 * 64;
  static constexpr long long group_bytes = bytes / 8;  // on average

  const unsigned char* begin;
  const unsigned char* integers;  // of the group

  HEED_DEVICE FactoredBlock(const unsigned char* scales, long long group)
      : begin(scales + group / 8 * bytes), integers(begin + factors * 64 + group % 8 * 64) {}
  HEED_DEVICE float factor(int array, int output) const {
    return value_of_f16(half_at(begin + array * 64, output));
  }
  HEED_DEVICE unsigned char byte(int array, int output) const {
    return integers[array * panel_outputs + output];
  }
};

struct FactoredScalesAndMinima : GroupScales<1, true> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    const FactoredBlock<2> block(scales, group);
    scale[0] = block.factor(0, output) * static_cast<float>(block.byte(0, output));
    minimum[0] = block.factor(1, output) * static_cast<float>(block.byte(1, output));
  }
  static constexpr long long group_bytes = FactoredBlock<2>::group_bytes;
};

struct FactoredHalfScales : GroupScales<2, false> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    const FactoredBlock<1> block(scales, group);
    const float factor = block.factor(0, output);
    HEED_UNROLL for (int half = 0; half < 2; ++half) {
      scale[half] = factor * static_cast<float>(static_cast<signed char>(block.byte(half, output)));
    }
  }
  static constexpr long long group_bytes = FactoredBlock<1>::group_bytes;
};

struct FactoredHalfScalesAndMinima : GroupScales<2, true> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    const FactoredBlock<2> block(scales, group);
    const float factor = block.factor(0, output), of_minima = block.factor(1, output);
    HEED_UNROLL for (int half = 0; half < 2; ++half) {
      const unsigned char both = block.byte(half, output);
      scale[half] = factor * static_cast<float>(both & 15U);
      minimum[half] = of_minima * static_cast<float>(both >> 4);
    }
  }
  static constexpr long long group_bytes = FactoredBlock<2>::group_bytes;
};

// --- Integers of an output in a group ---

template <int bits_, int offset_, class Scales_>
struct IntegerPanel {
  using Scales = Scales_;
  static constexpr int bits = bits_;  // and 32-bit words of an output in a group
  // What is subtracted from the integers; those of eight bits are signed bytes instead.
  static constexpr int offset = bits == 8 ? 0 : offset_;
  // Groups that are loaded together, so that enough bytes are under way.
  static constexpr int together = bits > 4 ? 2 : bits > 2 ? 4 : 8;
};

using Int8Panel = IntegerPanel<8, 128, Bf16Scales>;
using Int4Panel = IntegerPanel<4, 8, Bf16Scales>;
using Q8_0Panel = IntegerPanel<8, 128, F16Scales>;
using Q4_0Panel = IntegerPanel<4, 8, F16Scales>;
using Q4_1Panel = IntegerPanel<4, 0, F16ScalesAndMinima>;
using Q5_0Panel = IntegerPanel<5, 16, F16Scales>;
using Q5_1Panel = IntegerPanel<5, 0, F16ScalesAndMinima>;
using Q2KPanel = IntegerPanel<2, 0, FactoredHalfScalesAndMinima>;
using Q3KPanel = IntegerPanel<3, 4, FactoredHalfScales>;
using Q4KPanel = IntegerPanel<4, 0, FactoredScalesAndMinima>;
using Q5KPanel = IntegerPanel<5, 0, FactoredScalesAndMinima>;
using Q6KPanel = IntegerPanel<6, 32, FactoredHalfScales>;

// Calls body(panel) with the panel of a format that holds integers.
template <class Body>
HeedCudaResult with_integer_panel(int format, Body body) {
  switch (format) {
    case heed_panel_int8: return body(Int8Panel());
    case heed_panel_int4: return body(Int4Panel());
    case heed_panel_q8_0: return body(Q8_0Panel());
    case heed_panel_q4_0: return body(Q4_0Panel());
    case heed_panel_q4_1: return body(Q4_1Panel());
    case heed_panel_q5_0: return body(Q5_0Panel());
    case heed_panel_q5_1: return body(Q5_1Panel());
    case heed_panel_q2_k: return body(Q2KPanel());
    case heed_panel_q3_k: return body(Q3KPanel());
    case heed_panel_q4_k: return body(Q4KPanel());
    case heed_panel_q5_k: return body(Q5KPanel());
    case heed_panel_q6_k: return body(Q6KPanel());
    default: return "a format of weights that the library does not have";
  }
}

// A group's words, of the lane's output: a load of a warp is 128 consecutive bytes.
template <class Panel>
HEED_DEVICE void load_words(const unsigned* integers, long long group,
                            unsigned (&words)[Panel::bits]) {
  const unsigned* const from = integers + group * (Panel::bits * panel_outputs);
  HEED_UNROLL for (int i = 0; i < Panel::bits; ++i) words[i] = from[i * panel_outputs];
}

// The bits of every byte that are at `from`, moved to `to`, where the mask selects them.
HEED_DEVICE unsigned moved_bits(unsigned word, int from, int to, unsigned mask) {
  return (from > to ? word >> (from - to) : word << (to - from)) & mask;
}

// Four integers of a byte each, of inputs 4·quad to 4·quad + 3. `quad` is a constant where this is
// inlined.
template <class Panel>
HEED_DEVICE unsigned quad_of(const unsigned (&words)[Panel::bits], int quad) {
  constexpr int bits = Panel::bits;
  if constexpr (bits == 8) {
    return words[quad] ^ 0x80808080U;
  } else if constexpr (bits >= 4) {
    const unsigned halves = words[quad / 2] >> (quad % 2 * 4) & 0x0F0F0F0FU;
    if constexpr (bits == 5) return halves | moved_bits(words[4], quad, 4, 0x10101010U);
    if constexpr (bits == 6) {
      return halves | moved_bits(words[4 + quad / 4], quad % 4 * 2, 4, 0x30303030U);
    }
    return halves;
  } else {
    const unsigned pairs = words[quad / 4] >> (quad % 4 * 2) & 0x03030303U;
    if constexpr (bits == 3) return pairs | moved_bits(words[2], quad, 2, 0x04040404U);
    return pairs;
  }
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

// --- Weights restored ---

constexpr int restoring_warps = 8;

// A group of a panel, (inputs, outputs), with a column more so that both are read without
// conflicts.
using RestoredGroup = float[group_inputs][panel_outputs + 1];

struct Bf16Panel {};

HEED_DEVICE void restore_group(Bf16Panel, const HeedPanels& panels, long long panel,
                               long long group, int lane, RestoredGroup& to) {
  const unsigned* const from = static_cast<const unsigned*>(panels.integers) +
                               (panel * panels.groups + group) * 16 * panel_outputs + lane;
  HEED_UNROLL for (int pair = 0; pair < 16; ++pair) {
    const unsigned both = from[pair * panel_outputs];
    to[2 * pair][lane] = value_of_bf16(both);
    to[2 * pair + 1][lane] = __uint_as_float(both & 0xFFFF0000U);
  }
}

template <class Panel>
HEED_DEVICE void restore_group(Panel, const HeedPanels& panels, long long panel, long long group,
                               int lane, RestoredGroup& to) {
  unsigned words[Panel::bits];
  load_words<Panel>(static_cast<const unsigned*>(panels.integers) +
                        panel * panels.groups * (Panel::bits * panel_outputs) + lane,
                    group, words);
  typename Panel::Scales scales = {};
  scales.load(static_cast<const unsigned char*>(panels.scales) +
                  panel * panels.groups * Panel::Scales::group_bytes,
              group, lane);
  HEED_UNROLL for (int q = 0; q < group_quads; ++q) {
    const unsigned quad = quad_of<Panel>(words, q);
    const int half = q * Panel::Scales::halves / group_quads;
    HEED_UNROLL for (int i = 0; i < 4; ++i) {
      // signed where they have eight bits, and less than 64 elsewhere
      const int integer = static_cast<signed char>(quad >> (8 * i)) - Panel::offset;
      float weight = __fmul_rn(static_cast<float>(integer), scales.scale[half]);
      if constexpr (Panel::Scales::has_minima) weight -= scales.minimum[half];
      to[4 * q + i][lane] = weight;
    }
  }
}

// A warp a group of a panel, turned in shared memory so that rows are written in runs of 64 or 128
// bytes: limited by the bytes of the result.
template <class Panel, bool is_bf16>
__global__ void __launch_bounds__(restoring_warps* warp_lanes)
    restore(const HeedRestoredPanels operands) {
  __shared__ RestoredGroup of_warps[restoring_warps];
  const HeedPanels& panels = operands.panels;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  RestoredGroup& values = of_warps[threadIdx.x / warp_lanes];
  const long long row = panels.groups * group_inputs;  // numbers of an output
  for (long long item = first_item() / warp_lanes; item < panels.panels * panels.groups;
       item += item_step() / warp_lanes) {
    const long long panel = item / panels.groups, group = item % panels.groups;
    restore_group(Panel(), panels, panel, group, lane, values);
    __syncwarp();
    const long long first_output = panel * panel_outputs;
    if constexpr (is_bf16) {
      unsigned* const to = static_cast<unsigned*>(operands.to) + group * (group_inputs / 2);
      const int pair = lane % 16;
      for (int o = lane / 16; o < panel_outputs; o += 2) {
        if (first_output + o >= panels.outputs) break;
        to[(first_output + o) * (row / 2) + pair] =
            bf16_pair(values[2 * pair][o], values[2 * pair + 1][o]);
      }
    } else {
      float* const to = static_cast<float*>(operands.to) + group * group_inputs + lane;
      for (int o = 0; o < panel_outputs && first_output + o < panels.outputs; ++o) {
        to[(first_output + o) * row] = values[lane][o];
      }
    }
    __syncwarp();
  }
}

template <class Panel>
HeedCudaResult launch_restore(const HeedRestoredPanels& operands) {
  const dim3 grid = blocks_for(operands.panels.panels * operands.panels.groups, restoring_warps);
  return launch(operands.is_bf16 != 0 ? restore<Panel, true> : restore<Panel, false>, grid,
                dim3(restoring_warps * warp_lanes), 0, operands);
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

HeedCudaResult heed_cuda_restore_panels(const HeedRestoredPanels* operands) {
  using namespace heed_cuda;
  if (operands->panels.format == heed_panel_bf16) return launch_restore<Bf16Panel>(*operands);
  return with_integer_panel(operands->panels.format,
                            [&](auto panel) { return launch_restore<decltype(panel)>(*operands); });
}

}  // extern "C"
