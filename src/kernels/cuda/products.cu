// Matrix products by cuBLASLt, and what surrounds them.
#include "kernels/cuda/products.h"

#include <cublasLt.h>
#include <stdint.h>
#include <stdio.h>

#include <array>
#include <map>
#include <mutex>

#include "kernels/cuda/tensor_cores.h"

namespace heed_cuda {

struct DotOperands {
  HeedDotProducts all;
  int parts;            // warps that share the inputs of an output: 1, 2, 4 or 8
  long long row_parts;  // blocks beside each other, of rows_at_once rows each
};

struct RoundedOperands {
  HeedRoundedProducts all;
  long long row_parts;  // blocks beside each other, of some rows each
};

namespace {

// --- cuBLASLt ---

constexpr size_t workspace_bytes = size_t{32} << 20;  // what NVIDIA recommends for Hopper

// What an algorithm is chosen by: sizes, strides, alignments and flags.
using ProductKey = std::array<long long, 12>;

// For the rest of the process: at its end the driver may be gone before.
struct ProductLibrary {
  std::mutex mutex;
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  std::map<ProductKey, cublasLtMatmulAlgo_t> algorithms;
};
ProductLibrary& product_library() {
  static ProductLibrary* const library = new ProductLibrary;
  return *library;
}

thread_local char product_message[256];

HeedCudaResult result_of(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return nullptr;
  snprintf(product_message, sizeof product_message, "cuBLASLt: %s: %s", what,
           cublasLtGetStatusString(status));
  return product_message;
}

// Descriptions of one product, destroyed with it.
struct ProductDescription {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;

  ProductDescription() = default;
  ProductDescription(const ProductDescription&) = delete;
  ProductDescription& operator=(const ProductDescription&) = delete;
  ~ProductDescription() {
    if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
    if (d != nullptr) cublasLtMatrixLayoutDestroy(d);
    if (b != nullptr) cublasLtMatrixLayoutDestroy(b);
    if (a != nullptr) cublasLtMatrixLayoutDestroy(a);
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
  }

  template <class T>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    return cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value);
  }
  template <class T>
  cublasStatus_t prefer(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) const {
    return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  }
};

// Bytes that an address is a multiple of, up to what cuBLASLt distinguishes.
uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  uint32_t alignment = 1;
  while (alignment < 256 && bits % (2 * alignment) == 0) alignment *= 2;
  return alignment;
}

// Of what is written: the bias, which is read as that is, counts as well.
uint32_t result_alignment(const HeedProduct& product) {
  const uint32_t of_d = alignment_of(product.d);
  if (product.bias == nullptr) return of_d;
  const uint32_t of_bias = alignment_of(product.bias);
  return of_bias < of_d ? of_bias : of_d;
}

ProductKey key_of(const HeedProduct& product) {
  return {product.rows,
          product.columns,
          product.depth,
          product.a_stride,
          product.b_stride,
          product.d_stride,
          product.transposes_a + 2 * product.transposes_b,
          product.operands + 4 * product.accumulates,
          product.bias != nullptr,
          alignment_of(product.a),
          alignment_of(product.b),
          result_alignment(product)};
}

// The transpose of a matrix is stored instead of it.
cublasStatus_t create_layout(cublasLtMatrixLayout_t* layout, cudaDataType_t type, long long rows,
                             long long columns, bool is_transposed, long long stride) {
  return cublasLtMatrixLayoutCreate(layout, type,
                                    static_cast<uint64_t>(is_transposed ? columns : rows),
                                    static_cast<uint64_t>(is_transposed ? rows : columns), stride);
}

HeedCudaResult describe(const HeedProduct& product, ProductDescription& description) {
  const cudaDataType_t type = product.operands == heed_product_bf16 ? CUDA_R_16BF : CUDA_R_32F;
  // Sums are in f32.
  const cublasComputeType_t compute =
      product.operands == heed_product_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const auto operation_of = [](int transposes) {
    return static_cast<int32_t>(transposes != 0 ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  cublasStatus_t status = cublasLtMatmulDescCreate(&description.operation, compute, CUDA_R_32F);
  const auto then = [&status](auto step) {
    if (status == CUBLAS_STATUS_SUCCESS) status = step();
  };
  then([&] {
    return description.set(CUBLASLT_MATMUL_DESC_TRANSA, operation_of(product.transposes_a));
  });
  then([&] {
    return description.set(CUBLASLT_MATMUL_DESC_TRANSB, operation_of(product.transposes_b));
  });
  if (product.bias != nullptr) {
    then([&] {
      return description.set(CUBLASLT_MATMUL_DESC_EPILOGUE,
                             static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS));
    });
    then([&] { return description.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias); });
    then([&] {
      return description.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(CUDA_R_32F));
    });
  }
  then([&] {
    return create_layout(&description.a, type, product.rows, product.depth,
                         product.transposes_a != 0, product.a_stride);
  });
  then([&] {
    return create_layout(&description.b, type, product.depth, product.columns,
                         product.transposes_b != 0, product.b_stride);
  });
  then([&] {
    return create_layout(&description.d, CUDA_R_32F, product.rows, product.columns, false,
                         product.d_stride);
  });
  return result_of(status, "a product cannot be described");
}

HeedCudaResult choose_algorithm(const ProductLibrary& library, const HeedProduct& product,
                                ProductDescription& description, cublasLtMatmulAlgo_t* algorithm) {
  cublasStatus_t status = cublasLtMatmulPreferenceCreate(&description.preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    if (status == CUBLAS_STATUS_SUCCESS) status = description.prefer(attribute, value);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(product.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(product.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(product.d));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result_alignment(product));
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmulAlgoGetHeuristic(library.handle, description.operation, description.a,
                                            description.b, description.d, description.d,
                                            description.preference, 1, &found, &count);
  }
  if (status == CUBLAS_STATUS_SUCCESS && count == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
  *algorithm = found.algo;
  return result_of(status, "there is no algorithm for a product");
}

HeedCudaResult open_product_library(ProductLibrary& library) {
  if (library.workspace == nullptr) {
    const cudaError_t allocated = cudaMalloc(&library.workspace, workspace_bytes);
    if (allocated != cudaSuccess) return cudaGetErrorString(allocated);
  }
  if (library.handle != nullptr) return nullptr;
  return result_of(cublasLtCreate(&library.handle), "it cannot be started");
}

HeedCudaResult multiply(const HeedProduct& product) {
  const cudaError_t chosen = use_device();
  if (chosen != cudaSuccess) return cudaGetErrorString(chosen);
  ProductLibrary& library = product_library();
  // Held to the end: kernels of one product, which follow each other, share the workspace.
  const std::lock_guard<std::mutex> lock(library.mutex);
  HeedCudaResult failed = open_product_library(library);
  if (failed != nullptr) return failed;
  ProductDescription description;
  failed = describe(product, description);
  if (failed != nullptr) return failed;
  const ProductKey key = key_of(product);
  auto known = library.algorithms.find(key);
  if (known == library.algorithms.end()) {
    cublasLtMatmulAlgo_t algorithm = {};
    failed = choose_algorithm(library, product, description, &algorithm);
    if (failed != nullptr) return failed;
    known = library.algorithms.emplace(key, algorithm).first;
  }
  const float alpha = 1.0F, beta = product.accumulates != 0 ? 1.0F : 0.0F;
  return result_of(
      cublasLtMatmul(library.handle, description.operation, &alpha, product.a, description.a,
                     product.b, description.b, &beta, product.d, description.d, product.d,
                     description.d, &known->second, library.workspace, workspace_bytes, stream()),
      "a product cannot be computed");
}

// --- bf16 ---

// Eight numbers a thread: limited by bytes.
template <bool vectors>
__global__ void copy_as_bf16(const HeedBf16Copy operands) {
  const long long row_parts = operands.to_stride / 8;
  for (long long part = first_item(); part < operands.rows * row_parts; part += item_step()) {
    const long long row = part / row_parts, column = part % row_parts * 8;
    const float* const from = operands.from + row * operands.columns + column;
    float values[8];
    if (vectors && column + 8 <= operands.columns) {
      const float4 low = *reinterpret_cast<const float4*>(from);
      const float4 high = *reinterpret_cast<const float4*>(from + 4);
      values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
      values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
    } else {
      HEED_UNROLL for (int i = 0; i < 8; ++i) values[i] =
          column + i < operands.columns ? from[i] : 0.0F;
    }
    *reinterpret_cast<uint4*>(static_cast<unsigned short*>(operands.to) + part * 8) =
        make_uint4(bf16_pair(values[0], values[1]), bf16_pair(values[2], values[3]),
                   bf16_pair(values[4], values[5]), bf16_pair(values[6], values[7]));
  }
}

bool takes_vectors(const float* numbers, long long row_length) {
  return reinterpret_cast<uintptr_t>(numbers) % sizeof(float4) == 0 && row_length % 4 == 0;
}

// --- Products of a few rows ---

constexpr int dot_warps = 8;
constexpr int dot_outputs = 2;                     // of a warp: rows of x are read once for them
constexpr long long dot_chunk = 4LL * warp_lanes;  // inputs that a warp takes at a time
constexpr long long rows_at_once = 8;

// Numbers 4·lane to 4·lane + 3 of a chunk that has `count` of them, or is whole.
template <bool vectors, bool is_whole>
HEED_DEVICE float4 load_four(const float* chunk, int lane, long long count) {
  const float* const from = chunk + 4 * lane;
  if (vectors && (is_whole || 4 * lane + 4 <= count)) {
    return *reinterpret_cast<const float4*>(from);
  }
  if (is_whole) return make_float4(from[0], from[1], from[2], from[3]);
  const long long left = count - 4 * lane;
  return make_float4(left > 0 ? from[0] : 0.0F, left > 1 ? from[1] : 0.0F,
                     left > 2 ? from[2] : 0.0F, left > 3 ? from[3] : 0.0F);
}

HEED_DEVICE float dot_four(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// sums[row][output] += a chunk's products.
template <bool is_whole, int rows, bool vectors>
HEED_DEVICE void add_chunk(const float* const (&x)[rows], const float* const (&weight)[dot_outputs],
                           long long first, long long count, int lane,
                           float (&sums)[rows][dot_outputs]) {
  float4 weights[dot_outputs];
  HEED_UNROLL for (int o = 0; o < dot_outputs; ++o) {
    weights[o] = load_four<vectors, is_whole>(weight[o] + first, lane, count);
  }
  HEED_UNROLL for (int r = 0; r < rows; ++r) {
    const float4 inputs = load_four<vectors, is_whole>(x[r] + first, lane, count);
    HEED_UNROLL for (int o = 0; o < dot_outputs; ++o) sums[r][o] =
        dot_four(inputs, weights[o], sums[r][o]);
  }
}

// Each lane sums the same inputs in the same order for any number of rows: a row has the same bits
// beside any others. Limited by the weight's bytes; for more than eight rows its second reader
// finds it in the second-level cache.
template <int rows, bool vectors>
__global__ void __launch_bounds__(dot_warps* warp_lanes) dot_products(const DotOperands operands) {
  const HeedDotProducts& all = operands.all;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int parts = operands.parts, part = warp % parts;
  const long long groups = dot_warps / parts;  // of outputs, in a block
  const long long first_row = blockIdx.x % operands.row_parts * rows_at_once;
  const long long first_output =
      (blockIdx.x / operands.row_parts * groups + warp / parts) * dot_outputs;
  const float* x[rows];
  const float* weight[dot_outputs];
  HEED_UNROLL for (int r = 0; r < rows; ++r) x[r] =
      all.x + min(first_row + r, all.rows - 1) * all.inputs;
  HEED_UNROLL for (int o = 0; o < dot_outputs; ++o) {
    weight[o] = all.weight + min(first_output + o, all.outputs - 1) * all.inputs;
  }
  float sums[rows][dot_outputs] = {};
  const long long chunks = all.inputs / dot_chunk;  // whole ones
  const int own_chunks = static_cast<int>((chunks - part + parts - 1) / parts);
#if defined(__NVCC__)
#pragma unroll 4  // so that loads of several steps are under way
#endif
  for (int i = 0; i < own_chunks; ++i) {
    const long long chunk = part + static_cast<long long>(i) * parts;
    add_chunk<true, rows, vectors>(x, weight, chunk * dot_chunk, dot_chunk, lane, sums);
  }
  if (chunks % parts == part && chunks * dot_chunk < all.inputs) {
    add_chunk<false, rows, vectors>(x, weight, chunks * dot_chunk, all.inputs - chunks * dot_chunk,
                                    lane, sums);
  }
  __shared__ float of_warps[dot_warps][rows][dot_outputs];
  HEED_UNROLL for (int r = 0; r < rows; ++r) {
    HEED_UNROLL for (int o = 0; o < dot_outputs; ++o) {
      const float sum = warp_sum(sums[r][o]);
      if (lane == 0) of_warps[warp][r][o] = sum;
    }
  }
  __syncthreads();
  if (part != 0) return;
  const long long row = first_row + lane / dot_outputs, output = first_output + lane % dot_outputs;
  if (lane >= rows * dot_outputs || row >= all.rows || output >= all.outputs) return;
  float sum = all.bias == nullptr ? 0.0F : all.bias[output];
  for (int p = 0; p < parts; ++p) {
    sum += of_warps[warp + p][lane / dot_outputs][lane % dot_outputs];
  }
  all.out[row * all.outputs + output] = sum;
}

using DotKernel = void (*)(DotOperands);

template <bool vectors>
DotKernel dot_kernel(long long rows) {
  if (rows == 1) return dot_products<1, vectors>;
  if (rows == 2) return dot_products<2, vectors>;
  if (rows <= 4) return dot_products<4, vectors>;
  return dot_products<8, vectors>;
}

// Depends on the weight's shape alone. A device wants 16 warps or more on each multiprocessor, and
// a warp some chunks.
int parts_of_dots(const HeedDotProducts& operands) {
  constexpr long long wanted_warps = 132 * 16, least_chunks = 4;
  const long long outputs = (operands.outputs + dot_outputs - 1) / dot_outputs;
  int parts = 1;
  while (parts < dot_warps && outputs * parts < wanted_warps &&
         operands.inputs >= 2 * parts * least_chunks * dot_chunk) {
    parts *= 2;
  }
  return parts;
}

// --- Products of a few rows in bf16 ---

constexpr int rounded_outputs = 16;  // of a block: the rows of a fragment
constexpr int rounded_group = 32;    // inputs that a warp takes at a time
constexpr int most_rounded_warps = 16;
constexpr int tile_rows = 8;  // of x: the columns of a fragment

// Of the lane's output in a fragment: numbers 4·member to 4·member + 3 of both halves of a group.
template <bool vectors, bool is_whole>
HEED_DEVICE void load_halves(const float* group, int member, long long count, float4 (&halves)[2]) {
  HEED_UNROLL for (int half = 0; half < 2; ++half) {
    halves[half] = load_four<vectors, is_whole>(group + half * 16, member, count - half * 16);
  }
}

template <bool is_whole, int tiles, bool vectors>
HEED_DEVICE void add_rounded_group(const HeedRoundedProducts& all, const long long (&rows)[tiles],
                                   const float* upper, const float* lower, long long group,
                                   int member, long long count, float (&sums)[tiles][4]) {
  float4 of_upper[2], of_lower[2], of_x[2] = {};
  load_halves<vectors, is_whole>(upper + group * rounded_group, member, count, of_upper);
  load_halves<vectors, is_whole>(lower + group * rounded_group, member, count, of_lower);
  if (tiles == 1) {
    load_halves<vectors, is_whole>(
        static_cast<const float*>(all.x) + rows[0] * all.x_stride + group * rounded_group, member,
        count, of_x);
  }
  HEED_UNROLL for (int half = 0; half < 2; ++half) {
    const float4 &u = of_upper[half], &l = of_lower[half], &x = of_x[half];
    const unsigned a[4] = {bf16_pair(u.x, u.y), bf16_pair(l.x, l.y), bf16_pair(u.z, u.w),
                           bf16_pair(l.z, l.w)};
    HEED_UNROLL for (int t = 0; t < tiles; ++t) {
      uint2 inputs;
      if (tiles == 1) {
        inputs = make_uint2(bf16_pair(x.x, x.y), bf16_pair(x.z, x.w));
      } else {
        inputs = static_cast<const uint2*>(
            all.x)[rows[t] * (all.x_stride / 4) + group * 8 + half * 4 + member];
      }
      const unsigned b[2] = {inputs.x, inputs.y};
      multiply_fragments(sums[t], a, b[0], b[1]);
    }
  }
}

// Weights in f32 are rounded as they are read and multiplied by tensor cores, so that up to 32 rows
// wait for the same bytes as one; up to eight are rounded on the way too. A fragment holds inputs
// in other places than their own, which changes nothing because x's are in the same. The order of a
// row's sums depends on the weight's shape alone.
template <int tiles, bool vectors>
__global__ void __launch_bounds__(most_rounded_warps* warp_lanes)
    multiply_rounded(const RoundedOperands operands) {
  const HeedRoundedProducts& all = operands.all;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int warps = static_cast<int>(blockDim.x) / warp_lanes;
  const int set = lane / 4, member = lane % 4;
  const long long first_row = blockIdx.x % operands.row_parts * (tiles * tile_rows);
  const long long first_output = blockIdx.x / operands.row_parts * rounded_outputs;
  const float* const upper = all.weight + min(first_output + set, all.outputs - 1) * all.inputs;
  const float* const lower = all.weight + min(first_output + set + 8, all.outputs - 1) * all.inputs;
  long long rows[tiles];
  HEED_UNROLL for (int t = 0; t < tiles; ++t) {
    rows[t] = min(first_row + t * tile_rows + set, all.rows - 1);
  }
  float sums[tiles][4] = {};
  const int groups = static_cast<int>(all.inputs / rounded_group);  // whole ones
#if defined(__NVCC__)
#pragma unroll 2  // so that loads of several steps are under way
#endif
  for (int group = warp; group < groups; group += warps) {
    add_rounded_group<true, tiles, vectors>(all, rows, upper, lower, group, member, rounded_group,
                                            sums);
  }
  const long long left = all.inputs - static_cast<long long>(groups) * rounded_group;
  if (left > 0 && groups % warps == warp) {
    add_rounded_group<false, tiles, vectors>(all, rows, upper, lower, groups, member, left, sums);
  }
  __shared__ float of_warps[most_rounded_warps][tile_rows][rounded_outputs];
  HEED_UNROLL for (int t = 0; t < tiles; ++t) {
    HEED_UNROLL for (int i = 0; i < 4; ++i) {
      of_warps[warp][2 * member + i % 2][set + i / 2 * 8] = sums[t][i];
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < tile_rows * rounded_outputs;
         i += static_cast<int>(blockDim.x)) {
      const int r = i / rounded_outputs, o = i % rounded_outputs;
      const long long row = first_row + t * tile_rows + r, output = first_output + o;
      if (row >= all.rows || output >= all.outputs) continue;
      float sum = all.bias == nullptr ? 0.0F : all.bias[output];
      for (int w = 0; w < warps; ++w) sum += of_warps[w][r][o];
      all.out[row * all.outputs + output] = sum;
    }
    __syncthreads();
  }
}

struct RoundedKernel {
  void (*kernel)(RoundedOperands);
  int rows;
};

template <bool vectors>
RoundedKernel rounded_kernel(long long rows) {
  if (rows <= heed_rounded_rows) return {multiply_rounded<1, vectors>, 8};
  if (rows <= 16) return {multiply_rounded<2, vectors>, 16};
  return {multiply_rounded<4, vectors>, 32};
}

// Depends on the weight's shape alone: enough warps to fill a device, and groups for all of them.
int rounded_warps(const HeedRoundedProducts& operands) {
  constexpr long long many_outputs = 2 * 132 * rounded_outputs;
  const int most = operands.outputs >= many_outputs ? most_rounded_warps / 2 : most_rounded_warps;
  int warps = 1;
  while (warps < most && operands.inputs > static_cast<long long>(warps) * rounded_group) {
    warps *= 2;
  }
  return warps;
}

// --- Sums of columns ---

constexpr int column_warps = 8;

// A block's slice of rows of 32 columns, each warp every eighth row: limited by bytes.
__global__ void __launch_bounds__(column_warps* warp_lanes)
    sum_columns(const HeedColumnSums operands) {
  __shared__ float of_warps[column_warps][warp_lanes];
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const long long column = static_cast<long long>(blockIdx.x) * warp_lanes + lane;
  const long long slice = blockIdx.y;
  const long long begin = operands.rows * slice / operands.slices;
  const long long end = operands.rows * (slice + 1) / operands.slices;
  float even = 0.0F, odd = 0.0F;
  if (column < operands.columns) {
    const float* const x = operands.x + column;
    long long row = begin + warp;
    for (; row + column_warps < end; row += 2 * column_warps) {
      even += x[row * operands.columns];
      odd += x[(row + column_warps) * operands.columns];
    }
    if (row < end) even += x[row * operands.columns];
  }
  of_warps[warp][lane] = even + odd;
  __syncthreads();
  if (warp != 0 || column >= operands.columns) return;
  float sum = 0.0F;
  for (int w = 0; w < column_warps; ++w) sum += of_warps[w][lane];
  if (operands.slices == 1) {
    operands.sums[column] += sum;
  } else {
    operands.partial[slice * operands.columns + column] = sum;
  }
}

__global__ void add_slices(const HeedColumnSums operands) {
  for (long long column = first_item(); column < operands.columns; column += item_step()) {
    float sum = 0.0F;
    for (long long slice = 0; slice < operands.slices; ++slice) {
      sum += operands.partial[slice * operands.columns + column];
    }
    operands.sums[column] += sum;
  }
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_product(const HeedProduct* operands) {
  return heed_cuda::multiply(*operands);
}

HeedCudaResult heed_cuda_bf16_copy(const HeedBf16Copy* operands) {
  using namespace heed_cuda;
  constexpr int threads = 256;
  const dim3 grid = blocks_for(operands->rows * (operands->to_stride / 8), threads);
  return launch(
      takes_vectors(operands->from, operands->columns) ? copy_as_bf16<true> : copy_as_bf16<false>,
      grid, dim3(threads), 0, *operands);
}

HeedCudaResult heed_cuda_dot_products(const HeedDotProducts* operands) {
  using namespace heed_cuda;
  const int parts = parts_of_dots(*operands);
  const long long block_outputs = dot_outputs * (dot_warps / parts);
  const long long row_parts = (operands->rows + rows_at_once - 1) / rows_at_once;
  const long long blocks = (operands->outputs + block_outputs - 1) / block_outputs * row_parts;
  const bool vectors = takes_vectors(operands->x, operands->inputs) &&
                       takes_vectors(operands->weight, operands->inputs);
  const DotKernel kernel =
      vectors ? dot_kernel<true>(operands->rows) : dot_kernel<false>(operands->rows);
  return launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(dot_warps * warp_lanes), 0,
                DotOperands{*operands, parts, row_parts});
}

HeedCudaResult heed_cuda_rounded_products(const HeedRoundedProducts* operands) {
  using namespace heed_cuda;
  const bool takes_x = operands->rows > heed_rounded_rows ||
                       takes_vectors(static_cast<const float*>(operands->x), operands->x_stride);
  const RoundedKernel chosen = takes_x && takes_vectors(operands->weight, operands->inputs)
                                   ? rounded_kernel<true>(operands->rows)
                                   : rounded_kernel<false>(operands->rows);
  const long long row_parts = (operands->rows + chosen.rows - 1) / chosen.rows;
  const long long blocks = (operands->outputs + rounded_outputs - 1) / rounded_outputs * row_parts;
  const int threads = rounded_warps(*operands) * warp_lanes;
  return launch(chosen.kernel, dim3(static_cast<unsigned>(blocks)),
                dim3(static_cast<unsigned>(threads)), 0, RoundedOperands{*operands, row_parts});
}

HeedCudaResult heed_cuda_column_sums(const HeedColumnSums* operands) {
  using namespace heed_cuda;
  const dim3 grid(static_cast<unsigned>((operands->columns + warp_lanes - 1) / warp_lanes),
                  static_cast<unsigned>(operands->slices));
  const HeedCudaResult failed =
      launch(sum_columns, grid, dim3(column_warps * warp_lanes), 0, *operands);
  if (failed != nullptr || operands->slices == 1) return failed;
  constexpr int threads = 128;
  return launch(add_slices, blocks_for(operands->columns, threads), dim3(threads), 0, *operands);
}

}  // extern "C"
