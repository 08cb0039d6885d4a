// Panels of prepared weights restored, for products of many rows.
#include "kernels/cuda/prepared_panels.h"
#include "kernels/cuda/tensor_cores.h"

namespace heed_cuda {
namespace {

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

HeedCudaResult heed_cuda_restore_panels(const HeedRestoredPanels* operands) {
  using namespace heed_cuda;
  if (operands->panels.format == heed_panel_bf16) return launch_restore<Bf16Panel>(*operands);
  return with_integer_panel(operands->panels.format,
                            [&](auto panel) { return launch_restore<decltype(panel)>(*operands); });
}

}  // extern "C"
