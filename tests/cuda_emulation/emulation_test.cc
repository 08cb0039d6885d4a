// The emulation of CUDA itself: that it computes as a device does, and that it finds faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "cublasLt.h"
#include "cuda.h"
#include "cuda_bf16.h"
#include "cuda_runtime.h"
#include "sample.h"

namespace heed::emulation {
namespace {

// Memory of a device, with copies of all of it.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    EXPECT_EQ(cudaMalloc(&data_, size * sizeof(T)), cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~DeviceArray() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  std::size_t size_;
  T* data_ = nullptr;
};

template <class... Parameters, class... Arguments>
cudaError_t start(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream,
                  void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// Launches a kernel that ends the program.
void run_to_death(dim3 block, void (*kernel)()) {
  static_cast<void>(start(dim3(1), block, 0, nullptr, kernel));
  static_cast<void>(cudaDeviceSynchronize());
}

std::vector<float> random_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

// --- Threads ---

TEST(EmulatedThreads, SumsRowsWithShufflesAndSharedMemory) {
  const int rows = 5, columns = 1000;
  std::vector<float> in(static_cast<std::size_t>(rows * columns));
  std::iota(in.begin(), in.end(), 0.0F);  // whole numbers: sums of a row are exact
  const DeviceArray<float> device_in(in), out(rows);
  const SumOperands operands{device_in.data(), out.data(), rows, columns};
  ASSERT_EQ(heed_sample_sum_rows(&operands), nullptr);
  for (int row = 0; row < rows; ++row) {
    const float first = static_cast<float>(row * columns);
    EXPECT_EQ(out.values()[static_cast<std::size_t>(row)], columns * first + 999 * 500);
  }
}

__global__ void write_indices(unsigned* out) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = thread + 1000 * block;
}

TEST(EmulatedThreads, RunsEachThreadOfEachBlockOnce) {
  const dim3 grid(2, 3, 2), block(5, 4, 3);
  const DeviceArray<unsigned> out(12 * 60);
  ASSERT_EQ(start(grid, block, 0, nullptr, write_indices, out.data()), cudaSuccess);
  const std::vector<unsigned> values = out.values();
  for (unsigned i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i % 60 + i / 60 * 1000);
}

// Threads exit early at different times; the others still meet at barriers.
__global__ void leave_one_by_one(int* out) {
  __shared__ int present;
  const int thread = static_cast<int>(threadIdx.x);
  for (int round = 0; round < static_cast<int>(blockDim.x); ++round) {
    if (thread < round) return;
    if (thread == static_cast<int>(blockDim.x) - 1) present = 0;
    __syncthreads();
    atomicAdd(&present, 1);
    __syncthreads();
    if (thread == round) out[round] = present;
    __syncthreads();
  }
}

TEST(EmulatedThreads, CountsExitedThreadsAsArrived) {
  const int n = 70;
  const DeviceArray<int> out(n);
  ASSERT_EQ(start(dim3(1), dim3(n), 0, nullptr, leave_one_by_one, out.data()), cudaSuccess);
  const std::vector<int> values = out.values();
  for (int i = 0; i < n; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], n - i);
}

// Each half of a warp takes its own branch with exchanges of its own mask.
__global__ void diverge(float* out, unsigned* votes) {
  const unsigned lane = threadIdx.x;
  if (lane < 16) {
    out[lane] = __shfl_sync(0xffffU, static_cast<float>(lane), 15 - static_cast<int>(lane));
    votes[lane] = __ballot_sync(0xffffU, lane % 2 == 0);
  } else {
    votes[lane] = __ballot_sync(0xffff0000U, lane % 4 == 0);
    out[lane] = __shfl_down_sync(0xffff0000U, static_cast<float>(lane), 1);
  }
}

TEST(EmulatedThreads, ExchangesWithinBranches) {
  const DeviceArray<float> out(32);
  const DeviceArray<unsigned> votes(32);
  ASSERT_EQ(start(dim3(1), dim3(32), 0, nullptr, diverge, out.data(), votes.data()), cudaSuccess);
  const std::vector<float> values = out.values();
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t source = lane < 16 ? 15 - lane : std::min<std::size_t>(lane + 1, 31);
    EXPECT_EQ(values[lane], static_cast<float>(source)) << lane;
    EXPECT_EQ(votes.values()[lane], lane < 16 ? 0x5555U : 0x11110000U) << lane;
  }
}

__global__ void shuffle_segments(double* up, int* down, long long* flipped, unsigned* indexed) {
  const unsigned lane = threadIdx.x;
  up[lane] = __shfl_up_sync(0xffffffffU, static_cast<double>(lane), 3, 8);
  down[lane] = __shfl_down_sync(0xffffffffU, static_cast<int>(lane), 3, 8);
  flipped[lane] = __shfl_xor_sync(0xffffffffU, static_cast<long long>(lane), 5, 8);
  indexed[lane] = __shfl_sync(0xffffffffU, lane, 9, 8);
}

TEST(EmulatedThreads, ShufflesWithinSegments) {
  const DeviceArray<double> up(32);
  const DeviceArray<int> down(32);
  const DeviceArray<long long> flipped(32);
  const DeviceArray<unsigned> indexed(32);
  ASSERT_EQ(start(dim3(1), dim3(32), 0, nullptr, shuffle_segments, up.data(), down.data(),
                  flipped.data(), indexed.data()),
            cudaSuccess);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned in_segment = lane % 8;
    EXPECT_EQ(up.values()[lane], in_segment < 3 ? lane : lane - 3);
    EXPECT_EQ(down.values()[lane], static_cast<int>(in_segment > 4 ? lane : lane + 3));
    EXPECT_EQ(flipped.values()[lane], lane ^ 5U);
    EXPECT_EQ(indexed.values()[lane], lane - in_segment + 1);
  }
}

// The last warp has 8 threads, and masks of all lanes.
__global__ void sum_of_part(int* out) {
  int value = 1;
  for (int step = 4; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  out[threadIdx.x] = value;
}

TEST(EmulatedThreads, NeedsNoLanesBeyondTheBlock) {
  const DeviceArray<int> out(40);
  ASSERT_EQ(start(dim3(1), dim3(40), 0, nullptr, sum_of_part, out.data()), cudaSuccess);
  for (const int value : out.values()) EXPECT_EQ(value, 8);
}

__global__ void add_all(int* whole, float* real, unsigned* largest, unsigned* swapped) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(whole, 1);
  atomicAdd(real, 0.5F);
  atomicMax(largest, i);
  if (atomicCAS(swapped, 0U, i + 1) == 0) atomicAdd(whole, 1000000);  // one of them
}

TEST(EmulatedThreads, AddsAtomically) {
  const DeviceArray<int> whole(std::vector<int>{0});
  const DeviceArray<float> real(std::vector<float>{0});
  const DeviceArray<unsigned> largest(std::vector<unsigned>{0}), swapped(std::vector<unsigned>{0});
  ASSERT_EQ(start(dim3(10), dim3(100), 0, nullptr, add_all, whole.data(), real.data(),
                  largest.data(), swapped.data()),
            cudaSuccess);
  EXPECT_EQ(whole.values()[0], 1001000);
  EXPECT_EQ(real.values()[0], 500.0F);
  EXPECT_EQ(largest.values()[0], 999U);
  EXPECT_GE(swapped.values()[0], 1U);
  EXPECT_LE(swapped.values()[0], 1000U);
}

// Reverses a block by dynamic shared memory, and notes whether that was fresh.
__global__ void reverse(int* out, int* is_fresh) {
  auto* shared = static_cast<int*>(dynamic_shared());
  const unsigned i = threadIdx.x, n = blockDim.x;
  is_fresh[blockIdx.x * n + i] = shared[i] == -1 ? 1 : 0;
  shared[i] = static_cast<int>(i);
  __syncthreads();
  out[blockIdx.x * n + i] = shared[n - 1 - i];
}

TEST(EmulatedThreads, GivesEachBlockFreshDynamicSharedMemory) {
  const int n = 128;
  const DeviceArray<int> out(2 * n), is_fresh(2 * n);
  ASSERT_EQ(start(dim3(2), dim3(n), n * sizeof(int), nullptr, reverse, out.data(), is_fresh.data()),
            cudaSuccess);
  for (int i = 0; i < 2 * n; ++i) {
    EXPECT_EQ(out.values()[static_cast<std::size_t>(i)], n - 1 - i % n);
    EXPECT_EQ(is_fresh.values()[static_cast<std::size_t>(i)], 1);
  }
}

__global__ void count_to_barrier(int* out) {
  out[3 * threadIdx.x] = __syncthreads_count(threadIdx.x < 3);
  out[3 * threadIdx.x + 1] = __syncthreads_or(threadIdx.x == 3);
  out[3 * threadIdx.x + 2] = __syncthreads_and(threadIdx.x != 3);
}

TEST(EmulatedThreads, ReducesPredicatesAtBarriers) {
  const DeviceArray<int> out(3 * 50);
  ASSERT_EQ(start(dim3(1), dim3(50), 0, nullptr, count_to_barrier, out.data()), cudaSuccess);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(out.values()[3 * i], 3);
    EXPECT_EQ(out.values()[3 * i + 1], 1);
    EXPECT_EQ(out.values()[3 * i + 2], 0);
  }
}

// Each thread reads its left neighbour's number, of which only the barrier makes sure.
template <bool has_barrier>
__global__ void read_neighbour(int* out) {
  __shared__ int numbers[64];
  const int i = static_cast<int>(threadIdx.x);
  numbers[i] = -1;
  __syncthreads();
  numbers[i] = i;
  if constexpr (has_barrier) __syncthreads();
  out[i] = i == 0 ? 0 : numbers[i - 1];
}

class EmulatedOrder : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("HEED_EMULATED_ORDER", GetParam(), 1); }
  void TearDown() override { unsetenv("HEED_EMULATED_ORDER"); }
};

TEST_P(EmulatedOrder, ShowsAMissingBarrier) {
  const DeviceArray<int> out(64);
  ASSERT_EQ(start(dim3(1), dim3(64), 0, nullptr, read_neighbour<true>, out.data()), cudaSuccess);
  for (int i = 1; i < 64; ++i) EXPECT_EQ(out.values()[static_cast<std::size_t>(i)], i - 1);
  ASSERT_EQ(start(dim3(1), dim3(64), 0, nullptr, read_neighbour<false>, out.data()), cudaSuccess);
  const std::vector<int> values = out.values();
  EXPECT_GT(std::count(values.begin(), values.end(), -1), 0);
}

INSTANTIATE_TEST_SUITE_P(Orders, EmulatedOrder, testing::Values("reverse", "shuffle"));

__global__ void wait_for_ever() {
  if (threadIdx.x == 0) __syncthreads();
  if (threadIdx.x == 1) __syncwarp(0x7U);
}

TEST(EmulatedThreadsDeathTest, ReportsABlockThatWaitsForEver) {
  EXPECT_DEATH(run_to_death(dim3(4), wait_for_ever),
               "waits forever: 2 of 4 threads have exited, 1 wait at __syncthreads, lanes 0x2 of "
               "warp 0 wait for 0x1");
}

__global__ void exclude_itself() { __syncwarp(0x1U); }

TEST(EmulatedThreadsDeathTest, ReportsAMaskWithoutItsCaller) {
  EXPECT_DEATH(run_to_death(dim3(2), exclude_itself), "mask lacks its caller");
}

TEST(EmulatedThreads, RunsLaunchesOfSeveralHostThreads) {
  const DeviceArray<int> whole(std::vector<int>{0});
  const DeviceArray<float> real(std::vector<float>{0});
  const DeviceArray<unsigned> largest(std::vector<unsigned>{0}), swapped(std::vector<unsigned>{0});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int launch = 0; launch < 10; ++launch) {
        EXPECT_EQ(start(dim3(1), dim3(64), 0, nullptr, add_all, whole.data(), real.data(),
                        largest.data(), swapped.data()),
                  cudaSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(whole.values()[0], 4 * 10 * 64 + 1000000);
}

// --- Launches ---

TEST(EmulatedLaunch, ChecksLimits) {
  const DeviceArray<unsigned> out(1024);
  const auto error_of = [&](dim3 grid, dim3 block, std::size_t shared) {
    const cudaError_t error = start(grid, block, shared, nullptr, write_indices, out.data());
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return error;
  };
  EXPECT_EQ(error_of(dim3(1), dim3(1024), 0), cudaSuccess);
  EXPECT_EQ(error_of(dim3(1), dim3(1025), 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(dim3(1), dim3(32, 33), 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(dim3(1), dim3(1, 1, 65), 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(dim3(0), dim3(1), 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(dim3(1, 65536), dim3(1), 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(dim3(1), dim3(1), 48 << 10), cudaSuccess);
  EXPECT_EQ(error_of(dim3(1), dim3(1), (48 << 10) + 1), cudaErrorInvalidValue);
  EXPECT_EQ(
      cudaFuncSetAttribute(write_indices, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10),
      cudaSuccess);
  EXPECT_EQ(error_of(dim3(1), dim3(1), 64 << 10), cudaSuccess);
  EXPECT_EQ(error_of(dim3(1), dim3(1), (64 << 10) + 1), cudaErrorInvalidValue);
  EXPECT_EQ(
      cudaFuncSetAttribute(write_indices, cudaFuncAttributeMaxDynamicSharedMemorySize, 101377),
      cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

// --- Memory ---

__global__ void increment(int* values) { values[threadIdx.x] += 1; }

TEST(EmulatedMemoryDeathTest, HostCannotAccessIt) {
  const DeviceArray<int> array(std::vector<int>{1, 2, 3});
  EXPECT_DEATH(std::printf("%d", *static_cast<volatile int*>(array.data())), "");
  ASSERT_EQ(start(dim3(1), dim3(3), 0, nullptr, increment, array.data()), cudaSuccess);
  EXPECT_EQ(array.values(), (std::vector<int>{2, 3, 4}));
  EXPECT_DEATH(*static_cast<volatile int*>(array.data()) = 1, "");
}

TEST(EmulatedMemory, IsNotANumberWhenNew) {
  const DeviceArray<float> array(1000);
  for (const float value : array.values()) EXPECT_TRUE(std::isnan(value));
}

__global__ void write_beyond(int* values, int n) { values[n] = 0; }

TEST(EmulatedMemoryDeathTest, FindsWritesBeyondTheEnd) {
  EXPECT_DEATH(
      {
        int* data = nullptr;
        static_cast<void>(cudaMalloc(&data, 10 * sizeof(int)));
        static_cast<void>(start(dim3(1), dim3(1), 0, nullptr, write_beyond, data, 10));
        static_cast<void>(cudaFree(data));
      },
      "beyond the end of an allocation|use-after-poison");
}

TEST(EmulatedMemory, ChecksCopies) {
  const DeviceArray<int> array(std::vector<int>{1, 2, 3, 4, 5, 6});
  int host[6] = {};
  const auto copy = [](void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
    const cudaError_t error = cudaMemcpy(to, from, size, kind);
    static_cast<void>(cudaGetLastError());
    return error;
  };
  EXPECT_EQ(copy(host, array.data(), 24, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(host[5], 6);
  EXPECT_EQ(copy(host, array.data(), 24, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(host, array.data(), 24, cudaMemcpyHostToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(host, array.data(), 25, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(array.data() + 6, host, 4, cudaMemcpyDefault), cudaErrorInvalidValue);
  // Columns 1 and 2 of (2, 3).
  ASSERT_EQ(cudaMemcpy2DAsync(host, 8, array.data() + 1, 12, 8, 2, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ((std::vector<int>(host, host + 4)), (std::vector<int>{2, 3, 5, 6}));
  ASSERT_EQ(cudaMemset(array.data() + 1, 0, 8), cudaSuccess);
  EXPECT_EQ(array.values(), (std::vector<int>{1, 0, 0, 4, 5, 6}));
  EXPECT_EQ(cudaMemset(host, 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(EmulatedMemory, EndsAtItsSize) {
  std::size_t free = 0, total = 0, left = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total, std::size_t{4} << 30);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&data, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&left, &total), cudaSuccess);
  EXPECT_EQ(left, free - (1 << 20));
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, data), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaFree(&left), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  ASSERT_EQ(cudaMemGetInfo(&left, &total), cudaSuccess);
  EXPECT_EQ(left, free);
}

TEST(EmulatedMemoryDeathTest, MapsVirtualMemory) {
  void* function = nullptr;
  ASSERT_EQ(cudaGetDriverEntryPoint("cuMemMap", &function, cudaEnableDefault), cudaSuccess);
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemMap));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t piece = 0;
  ASSERT_EQ(cuMemGetAllocationGranularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAddressReserve(&address, 4 * piece, 0, 0, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle handles[2];
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(cuMemCreate(&handles[i], piece, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemMap(address + i * piece, piece, 0, handles[i], 0), CUDA_SUCCESS);
  }
  auto* data = reinterpret_cast<int*>(address);
  EXPECT_EQ(cudaMemset(data, 0, 4), cudaErrorInvalidValue);  // before access
  static_cast<void>(cudaGetLastError());
  ASSERT_EQ(cuMemSetAccess(address, 2 * piece, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemSetAccess(address, 3 * piece, &access, 1), CUDA_ERROR_INVALID_VALUE);

  // The two pieces are one range; both are new.
  int* border = data + piece / sizeof(int) - 1;
  ASSERT_EQ(start(dim3(1), dim3(2), 0, nullptr, increment, border), cudaSuccess);
  int host[2] = {5, 5};
  ASSERT_EQ(cudaMemcpy(host, border, 8, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host[0], 0);
  EXPECT_EQ(host[1], 0);
  EXPECT_DEATH(std::printf("%d", *static_cast<volatile int*>(border)), "");
  EXPECT_EQ(cudaMemset(data, 0, 2 * piece + 1), cudaErrorInvalidValue);
  static_cast<void>(cudaGetLastError());

  // A piece keeps its contents when it is mapped elsewhere.
  ASSERT_EQ(cuMemUnmap(address, piece), CUDA_SUCCESS);
  EXPECT_EQ(cudaMemset(data, 0, 4), cudaErrorInvalidValue);
  static_cast<void>(cudaGetLastError());
  ASSERT_EQ(cuMemMap(address + 2 * piece, piece, 0, handles[0], 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(address + 2 * piece, piece, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(cudaMemcpy(host, border + 2 * piece / sizeof(int), 4, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(host[0], 0);

  EXPECT_EQ(cuMemAddressFree(address, 4 * piece), CUDA_ERROR_INVALID_VALUE);  // still mapped
  for (const CUmemGenericAllocationHandle handle : handles) {
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  }
  std::size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  ASSERT_EQ(cuMemUnmap(address + piece, 2 * piece), CUDA_SUCCESS);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(after, before + 2 * piece);
  EXPECT_EQ(cuMemAddressFree(address, 4 * piece), CUDA_SUCCESS);
}

// --- Streams, events and graphs ---

__global__ void add_to(int* value, int added) { *value += added; }

TEST(EmulatedGraph, RecordsAndReplays) {
  const DeviceArray<int> value(std::vector<int>{1}), copy(std::vector<int>{0});
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  int added = 10;
  ASSERT_EQ(start(dim3(1), dim3(1), 0, stream, add_to, value.data(), added), cudaSuccess);
  added = 0;  // recorded by value
  ASSERT_EQ(cudaMemcpyAsync(copy.data(), value.data(), 4, cudaMemcpyDeviceToDevice, stream),
            cudaSuccess);
  cudaStreamCaptureStatus status{};
  ASSERT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(value.values()[0], 1);  // nothing has run
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(copy.values()[0], 31);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(EmulatedGraph, RefusesWhatCannotBeCaptured) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 4), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  static_cast<void>(cudaGetLastError());
}

TEST(EmulatedGraph, IncludesStreamsThatWaitForIt) {
  const DeviceArray<int> value(std::vector<int>{0});
  cudaStream_t streams[2];
  cudaEvent_t events[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming), cudaSuccess);
  }
  ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(events[0], streams[0]), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(streams[1], events[0]), cudaSuccess);
  ASSERT_EQ(start(dim3(1), dim3(1), 0, streams[1], add_to, value.data(), 5), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(events[1], streams[1]), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(streams[0], events[1]), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
  EXPECT_EQ(value.values()[0], 0);
  ASSERT_EQ(start(dim3(1), dim3(1), 0, streams[1], add_to, value.data(), 1), cudaSuccess);
  EXPECT_EQ(value.values()[0], 1);  // the second stream is free again
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cudaStreamDestroy(streams[i]), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(events[i]), cudaSuccess);
  }
}

TEST(EmulatedStreams, WorkWaitsWhenTheyAreLazy) {
  const DeviceArray<int> value(std::vector<int>{1});
  int* host = nullptr;
  ASSERT_EQ(cudaMallocHost(&host, sizeof(int)), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto add_and_copy = [&](int added) {
    ASSERT_EQ(start(dim3(1), dim3(1), 0, stream, add_to, value.data(), added), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(host, value.data(), 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  };
  setenv("HEED_EMULATED_LAZY", "0", 1);
  add_and_copy(1);
  EXPECT_EQ(*host, 2);
  setenv("HEED_EMULATED_LAZY", "1", 1);
  add_and_copy(1);
  EXPECT_EQ(*host, 2);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(*host, 3);
  add_and_copy(1);
  EXPECT_EQ(value.values()[0], 4);  // to memory that is not page-locked
  EXPECT_EQ(*host, 4);
  unsetenv("HEED_EMULATED_LAZY");
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

// --- Numbers ---

TEST(EmulatedNumbers, RoundsBf16ToNearestEven) {
  const auto bits = [](float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); };
  EXPECT_EQ(bits(1.0F), 0x3f80);
  EXPECT_EQ(bits(1.00390625F), 0x3f80);  // 1 + 2^-8, halfway: to even
  EXPECT_EQ(bits(1.01171875F), 0x3f82);  // 1 + 3·2^-8, halfway: to even
  EXPECT_EQ(bits(1.005F), 0x3f81);
  EXPECT_EQ(bits(-INFINITY), 0xff80);
  EXPECT_EQ(bits(3.4e38F), 0x7f80);
  EXPECT_TRUE(std::isnan(__bfloat162float(__float2bfloat16(NAN))));
  const __nv_bfloat162 pair = __floats2bfloat162_rn(1.5F, -2.0F);
  std::uint32_t both = 0;
  std::memcpy(&both, &pair, 4);
  EXPECT_EQ(both, 0xc0003fc0U);
  EXPECT_EQ(__bfloat1622float2(pair).y, -2.0F);
}

TEST(EmulatedNumbers, MultipliesBytes) {
  EXPECT_EQ(__dp4a(0x01ff0280, 0x02030405, 7), 7 + 1 * 2 + -1 * 3 + 2 * 4 + -128 * 5);
  EXPECT_EQ(__popc(0xf0fU), 8);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__ffs(8), 4);
}

float rounded(float value) { return __bfloat162float(__float2bfloat16_rn(value)); }

TEST(EmulatedProduct, OfAWarpIsThePlainOne) {
  const std::vector<float> a = random_values(16 * 16, 1), b = random_values(16 * 8, 2);
  const DeviceArray<float> device_a(a), device_b(b), out(16 * 8);
  ASSERT_EQ(heed_sample_multiply(device_a.data(), device_b.data(), out.data()), nullptr);
  const std::vector<float> values = out.values();
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      float sum = 0.0F;
      for (std::size_t k = 0; k < 16; ++k) {
        sum += rounded(a[row * 16 + k]) * rounded(b[k * 8 + column]);
      }
      EXPECT_FLOAT_EQ(values[row * 8 + column], sum) << row << ", " << column;
    }
  }
}

TEST(EmulatedNumbers, RunsEachFunctionOfTheSample) {
  const int n = 200;
  const DeviceArray<float> in(std::vector<float>(n, 0.0F)), out(std::vector<float>(n + 1, 0.0F));
  const DeviceArray<unsigned> counts(std::vector<unsigned>(3, 0));
  ASSERT_EQ(heed_sample_functions(in.data(), out.data(), counts.data(), n), nullptr);
  EXPECT_EQ(counts.values()[0], 200U);
  EXPECT_EQ(counts.values()[1], 32U);
  // Of 0: seven functions are 1, −1 is one, and exp(−1) + log(2).
  EXPECT_NEAR(out.values()[0], 6.0 + std::exp(-1.0) + std::log(2.0), 1e-6);
}

// --- cuBLASLt ---

struct ProductCase {
  bool transposes_a, transposes_b;
  cudaDataType in, out;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;

  bool is_tf32() const { return compute == CUBLAS_COMPUTE_32F_FAST_TF32; }
};

// To 10 bits of mantissa by adding half a unit of the last one, and cutting off what is less than
// one.
float rounded_to_tf32(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  bits = (bits + (1U << 12)) >> 13 << 13;
  std::memcpy(&value, &bits, 4);
  return value;
}

class EmulatedBlas : public testing::TestWithParam<ProductCase> {};

// Column-major matrices of one type, with padding between columns.
struct TestMatrix {
  std::uint64_t rows, columns;
  std::int64_t step;
  cudaDataType type;
  std::vector<float> values;  // as the type holds them
  std::unique_ptr<DeviceArray<std::byte>> device;
  cublasLtMatrixLayout_t layout = nullptr;

  TestMatrix(std::uint64_t rows_, std::uint64_t columns_, std::int32_t batches, cudaDataType type_,
             unsigned seed)
      : rows(rows_), columns(columns_), step(static_cast<std::int64_t>(rows_) + 3), type(type_) {
    const std::int64_t stride = step * static_cast<std::int64_t>(columns) + 5;
    values = random_values(static_cast<std::size_t>(stride * batches), seed);
    const std::size_t width = type == CUDA_R_32F ? 4 : 2;
    std::vector<std::byte> bytes(values.size() * width);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type == CUDA_R_32F) {
        std::memcpy(&bytes[i * 4], &values[i], 4);
      } else {
        const std::uint16_t bits = __bfloat16_as_ushort(__float2bfloat16_rn(values[i]));
        std::memcpy(&bytes[i * 2], &bits, 2);
        values[i] = rounded(values[i]);
      }
    }
    device = std::make_unique<DeviceArray<std::byte>>(bytes);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, type, rows, columns, step),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches,
                                               sizeof batches),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &stride, sizeof stride),
              CUBLAS_STATUS_SUCCESS);
    batch_stride = static_cast<std::size_t>(stride);
  }
  ~TestMatrix() { cublasLtMatrixLayoutDestroy(layout); }
  TestMatrix(const TestMatrix&) = delete;
  TestMatrix& operator=(const TestMatrix&) = delete;

  std::size_t batch_stride = 0;
  float at(std::size_t batch, std::size_t row, std::size_t column) const {
    return values[batch * batch_stride + column * static_cast<std::size_t>(step) + row];
  }
  // Reads the device's values.
  void update() {
    const std::vector<std::byte> bytes = device->values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type == CUDA_R_32F) {
        std::memcpy(&values[i], &bytes[i * 4], 4);
      } else {
        std::uint16_t bits = 0;
        std::memcpy(&bits, &bytes[i * 2], 2);
        values[i] = __bfloat162float(__ushort_as_bfloat16(bits));
      }
    }
  }
};

TEST_P(EmulatedBlas, IsThePlainProduct) {
  const ProductCase& p = GetParam();
  const std::uint64_t m = 37, n = 21, depth = 19;
  const std::int32_t batches = 2;
  TestMatrix a(p.transposes_a ? depth : m, p.transposes_a ? m : depth, batches, p.in, 1);
  TestMatrix b(p.transposes_b ? n : depth, p.transposes_b ? depth : n, batches, p.in, 2);
  TestMatrix d(m, n, batches, p.out, 3);
  const TestMatrix bias(m, 1, 1, p.out, 4);
  const std::vector<float> c = d.values;
  if (p.is_tf32() && p.in == CUDA_R_32F) {
    for (TestMatrix* matrix : {&a, &b}) {
      std::ranges::transform(matrix->values, matrix->values.begin(), rounded_to_tf32);
    }
  }

  cublasLtHandle_t handle = nullptr;
  ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulDesc_t description = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&description, p.compute, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.device->data()));
  cublasLtMatmulPreference_t preference = nullptr;
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulHeuristicResult_t result{};
  int results = 0;
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle, description, a.layout, b.layout, d.layout,
                                           d.layout, preference, 1, &result, &results),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(results, 1);
  const float alpha = 0.5F, beta = 2.0F;
  ASSERT_EQ(cublasLtMatmul(handle, description, &alpha, a.device->data(), a.layout,
                           b.device->data(), b.layout, &beta, d.device->data(), d.layout,
                           d.device->data(), d.layout, &result.algo, nullptr, 0, nullptr),
            CUBLAS_STATUS_SUCCESS);
  d.update();

  for (std::size_t batch = 0; batch < 2; ++batch) {
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t column = 0; column < n; ++column) {
        double sum = 0.0, size = 0.0;
        for (std::size_t k = 0; k < depth; ++k) {
          const double product =
              double{p.transposes_a ? a.at(batch, k, row) : a.at(batch, row, k)} *
              (p.transposes_b ? b.at(batch, column, k) : b.at(batch, k, column));
          sum += product;
          size += std::fabs(product);
        }
        const float old =
            c[batch * d.batch_stride + column * static_cast<std::size_t>(d.step) + row];
        const double expected = alpha * sum + beta * old + bias.at(0, row, 0);
        const double rounding = p.out == CUDA_R_32F ? 0.0 : std::fabs(expected) / 256;
        EXPECT_NEAR(d.at(batch, row, column), expected, 1e-6 * (size + 10) + rounding);
      }
      // What lies between columns is left alone.
    }
    const std::size_t padding = batch * d.batch_stride + m;
    EXPECT_EQ(d.values[padding], c[padding]);
  }
  EXPECT_EQ(cublasLtMatmul(handle, description, &alpha, a.device->data(), b.layout,
                           b.device->data(), b.layout, &beta, d.device->data(), d.layout,
                           d.device->data(), d.layout, nullptr, nullptr, 0, nullptr),
            CUBLAS_STATUS_INVALID_VALUE);  // shapes that do not fit
  EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmulDescDestroy(description), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

constexpr cublasComputeType_t tf32 = CUBLAS_COMPUTE_32F_FAST_TF32;

INSTANTIATE_TEST_SUITE_P(Cases, EmulatedBlas,
                         testing::Values(ProductCase{false, false, CUDA_R_32F, CUDA_R_32F},
                                         ProductCase{true, false, CUDA_R_32F, CUDA_R_32F},
                                         ProductCase{false, true, CUDA_R_32F, CUDA_R_32F},
                                         ProductCase{true, true, CUDA_R_32F, CUDA_R_32F},
                                         ProductCase{true, false, CUDA_R_16BF, CUDA_R_32F},
                                         ProductCase{false, true, CUDA_R_16BF, CUDA_R_16BF},
                                         ProductCase{true, false, CUDA_R_32F, CUDA_R_32F, tf32},
                                         ProductCase{false, true, CUDA_R_32F, CUDA_R_32F, tf32},
                                         ProductCase{false, true, CUDA_R_16BF, CUDA_R_32F, tf32}));

// Each of these times one, by itself.
std::vector<float> times_one(const std::vector<float>& numbers, cublasComputeType_t compute) {
  const std::uint64_t count = numbers.size();
  const DeviceArray<float> a(numbers), b(std::vector<float>{1.0F}), d(numbers.size());
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t column = nullptr, one = nullptr;
  EXPECT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmulDescCreate(&description, compute, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&column, CUDA_R_32F, count, 1, std::ssize(numbers)),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&one, CUDA_R_32F, 1, 1, 1), CUBLAS_STATUS_SUCCESS);
  const float alpha = 1.0F, beta = 0.0F;
  EXPECT_EQ(cublasLtMatmul(handle, description, &alpha, a.data(), column, b.data(), one, &beta,
                           d.data(), column, d.data(), column, nullptr, nullptr, 0, nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(one), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(column), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmulDescDestroy(description), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
  return d.values();
}

TEST(EmulatedTf32, IsRoundedToNearestAndAwayFromZero) {
  const std::vector<float> numbers{
      1.0F + 0x1p-11F,  // halfway
      -1.0F - 0x1p-11F, 1.0F + 3 * 0x1p-11F, 1.0F + 0x1p-11F - 0x1p-23F, 1.0F + 5 * 0x1p-10F,
      3.4028235e38F,    -INFINITY,           0x1p-130F + 0x1p-149F};
  const std::vector<float> rounded_numbers{
      1.0F + 0x1p-10F,     -1.0F - 0x1p-10F, 1.0F + 0x1p-9F, 1.0F,
      1.0F + 5 * 0x1p-10F, INFINITY,         -INFINITY,      0x1p-130F};
  EXPECT_EQ(times_one(numbers, tf32), rounded_numbers);
  EXPECT_EQ(times_one(numbers, CUBLAS_COMPUTE_32F), numbers);
  EXPECT_TRUE(std::isnan(times_one({NAN}, tf32).front()));
}

}  // namespace
}  // namespace heed::emulation
