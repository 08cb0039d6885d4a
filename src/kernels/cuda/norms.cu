#include "kernels/cuda/norms.h"

#include "kernels/cuda/row_threads.h"

namespace heed_cuda {
namespace {

HEED_DEVICE long long head_offset(const HeedHeadStrides& strides, long long row, long long heads) {
  return row / heads * strides.row + row % heads * strides.head;
}

// Bytes are the limit: a row is read once, and stays in registers between the sums.
template <bool centred, int threads, int groups>
__global__ void __launch_bounds__(RowThreads<threads>::block)
    norm_forward(const HeedNormForward operands) {
  using Team = RowThreads<threads>;
  const long long row = Team::row();
  if (row >= operands.rows) return;
  const Columns<threads, groups> columns{operands.channels};
  const RowValues<threads, groups> x(
      operands.x + head_offset(operands.x_strides, row, operands.heads), columns);
  const auto channels = static_cast<float>(operands.channels);
  // 1: mean
  float mean = 0;
  if constexpr (centred) {
    float sum = 0;
    columns.for_each([&](int k, long long column, int size) {
      float values[4];
      x.get(k, column, size, values);
      sum += (values[0] + values[1]) + (values[2] + values[3]);
    });
    mean = Team::sum(sum) / channels;
  }
  // 2: reciprocal deviation
  float square = 0;
  columns.for_each([&](int k, long long column, int size) {
    float values[4];
    x.get(k, column, size, values);
    for (int j = 0; j < 4; ++j) {
      const float distance = j < size ? values[j] - mean : 0.0F;
      square = fmaf(distance, distance, square);
    }
  });
  const float reciprocal = 1.0F / sqrtf(Team::sum(square) / channels + operands.epsilon);
  // 3: normalise, 4: scale and shift
  float* const out = operands.out + head_offset(operands.out_strides, row, operands.heads);
  columns.for_each([&](int k, long long column, int size) {
    float values[4], gain[4], bias[4] = {};
    x.get(k, column, size, values);
    columns.load(operands.gain + column, size, gain);
    if (operands.bias != nullptr) columns.load(operands.bias + column, size, bias);
    for (int j = 0; j < 4; ++j) values[j] = fmaf((values[j] - mean) * reciprocal, gain[j], bias[j]);
    columns.store(values, size, out + column);
  });
  if (Team::thread() != 0) return;
  if (centred) operands.mean[row] = mean;
  operands.reciprocal_deviation[row] = reciprocal;
}

// The sums of a thread's columns over the rows of a part: in registers, or in memory where rows are
// of any length.
template <int threads, int groups>
struct PartialSums {
  float* memory;  // null: not wanted
  float sums[room<groups>][4];

  HEED_DEVICE PartialSums(float* at, const Columns<threads, groups>& columns) : memory(at) {
    for (int k = 0; k < room<groups>; ++k) {
      for (int j = 0; j < 4; ++j) sums[k][j] = 0;
    }
    if constexpr (groups == 0) finish(columns);
  }

  HEED_DEVICE void add(int k, long long column, int size, const float (&values)[4]) {
    if constexpr (groups > 0) {
      for (int j = 0; j < 4; ++j) sums[k][j] += values[j];
    } else if (memory != nullptr) {
      for (int j = 0; j < size; ++j) memory[column + j] += values[j];
    }
  }

  HEED_DEVICE void finish(const Columns<threads, groups>& columns) {
    if (memory == nullptr) return;
    columns.for_each(
        [&](int k, long long column, int size) { columns.store(sums[k], size, memory + column); });
  }
};

// Bytes are the limit: of a row, x and d_out are read once.
template <bool centred, int threads, int groups>
__global__ void __launch_bounds__(RowThreads<threads>::block)
    norm_backward(const HeedNormBackward operands) {
  using Team = RowThreads<threads>;
  const long long part = Team::row();
  if (part >= operands.parts) return;
  const Columns<threads, groups> columns{operands.channels};
  const auto channels = static_cast<float>(operands.channels);
  const long long width = operands.d_bias != nullptr ? 2 * operands.channels : operands.channels;
  float* const partial =
      operands.d_gain != nullptr ? operands.partial_sums + part * width : nullptr;
  PartialSums<threads, groups> d_gain(partial, columns);
  PartialSums<threads, groups> d_bias(
      operands.d_bias != nullptr ? partial + operands.channels : nullptr, columns);
  for (long long row = part; row < operands.rows; row += operands.parts) {
    const RowValues<threads, groups> x(
        operands.x + head_offset(operands.x_strides, row, operands.heads), columns);
    const RowValues<threads, groups> d_out(
        operands.d_out + head_offset(operands.d_out_strides, row, operands.heads), columns);
    const float mean = centred ? operands.mean[row] : 0.0F;
    const float reciprocal = operands.reciprocal_deviation[row];
    // 4: out = normalised · gain + bias
    float gradient_sum = 0, product_sum = 0;
    columns.for_each([&](int k, long long column, int size) {
      float values[4], d_values[4], gain[4], products[4];
      x.get(k, column, size, values);
      d_out.get(k, column, size, d_values);
      columns.load(operands.gain + column, size, gain);
      for (int j = 0; j < 4; ++j) {
        const float normalised = (values[j] - mean) * reciprocal;
        const float d_normalised = d_values[j] * gain[j];  // 0 beyond the row
        products[j] = d_values[j] * normalised;
        gradient_sum += d_normalised;
        product_sum = fmaf(d_normalised, normalised, product_sum);
      }
      d_gain.add(k, column, size, products);
      if (centred) d_bias.add(k, column, size, d_values);
    });
    // 3, 2, 1: take out the components along 1 and along `normalised`
    const float mean_gradient = centred ? Team::sum(gradient_sum) / channels : 0.0F;
    const float mean_product = Team::sum(product_sum) / channels;
    float* const d_x = operands.d_x + head_offset(operands.d_x_strides, row, operands.heads);
    columns.for_each([&](int k, long long column, int size) {
      float values[4], d_values[4], gain[4], before[4] = {};
      x.get(k, column, size, values);
      d_out.get(k, column, size, d_values);
      columns.load(operands.gain + column, size, gain);
      if (operands.accumulates) columns.load(d_x + column, size, before);
      for (int j = 0; j < 4; ++j) {
        const float normalised = (values[j] - mean) * reciprocal;
        const float projected =
            fmaf(-normalised, mean_product, fmaf(d_values[j], gain[j], -mean_gradient));
        values[j] = fmaf(reciprocal, projected, before[j]);
      }
      columns.store(values, size, d_x + column);
    });
  }
  if constexpr (groups > 0) {
    d_gain.finish(columns);
    d_bias.finish(columns);
  }
}

// Adds the sums of all parts, in their order, to the gradients. A warp has 32 columns.
constexpr int sum_threads = 512;
__global__ void __launch_bounds__(sum_threads) add_partial_sums(const HeedNormBackward operands) {
  constexpr int warps = sum_threads / warp_lanes;
  __shared__ float sums[warps][warp_lanes];
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const long long channels = operands.channels;
  const long long width = operands.d_bias != nullptr ? 2 * channels : channels;
  const long long column = static_cast<long long>(blockIdx.x) * warp_lanes + lane;
  float sum = 0;
  if (column < width) {
    for (long long part = warp; part < operands.parts; part += warps) {
      sum += operands.partial_sums[part * width + column];
    }
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= width) return;
  for (int i = 1; i < warps; ++i) sum += sums[i][lane];
  if (column < channels) {
    operands.d_gain[column] += sum;
  } else {
    operands.d_bias[column - channels] += sum;
  }
}

bool are_aligned(const float* data, const HeedHeadStrides& strides) {
  return is_aligned(data) && strides.row % 4 == 0 && strides.head % 4 == 0;
}

template <bool centred>
HeedCudaResult launch_forward(const HeedNormForward& operands, RowAlignment alignment) {
  return with_row_division(operands.channels, alignment, [&](auto division) {
    constexpr int threads = decltype(division)::threads, groups = decltype(division)::groups;
    return launch(norm_forward<centred, threads, groups>, RowThreads<threads>::grid(operands.rows),
                  RowThreads<threads>::block, 0, operands);
  });
}

template <bool centred>
HeedCudaResult launch_backward(const HeedNormBackward& operands, RowAlignment alignment) {
  return with_row_division(operands.channels, alignment, [&](auto division) {
    constexpr int threads = decltype(division)::threads, groups = decltype(division)::groups;
    return launch(norm_backward<centred, threads, groups>,
                  RowThreads<threads>::grid(operands.parts), RowThreads<threads>::block, 0,
                  operands);
  });
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_norm_forward(const HeedNormForward* operands) {
  using namespace heed_cuda;
  const bool has_quads = are_aligned(operands->x, operands->x_strides) &&
                         are_aligned(operands->out, operands->out_strides) &&
                         is_aligned(operands->gain) && is_aligned(operands->bias);
  const RowAlignment alignment = has_quads ? RowAlignment::quads : RowAlignment::none;
  return operands->mean != nullptr ? launch_forward<true>(*operands, alignment)
                                   : launch_forward<false>(*operands, alignment);
}

HeedCudaResult heed_cuda_norm_backward(const HeedNormBackward* operands) {
  using namespace heed_cuda;
  const bool has_quads = are_aligned(operands->x, operands->x_strides) &&
                         are_aligned(operands->d_out, operands->d_out_strides) &&
                         are_aligned(operands->d_x, operands->d_x_strides) &&
                         is_aligned(operands->gain) && is_aligned(operands->partial_sums);
  const RowAlignment alignment = has_quads ? RowAlignment::quads : RowAlignment::none;
  const HeedCudaResult failed = operands->mean != nullptr
                                    ? launch_backward<true>(*operands, alignment)
                                    : launch_backward<false>(*operands, alignment);
  if (failed != nullptr || operands->d_gain == nullptr) return failed;
  const long long width = operands->d_bias != nullptr ? 2 * operands->channels : operands->channels;
  return launch(add_partial_sums, blocks_for(width, warp_lanes), sum_threads, 0, *operands);
}

}  // extern "C"
