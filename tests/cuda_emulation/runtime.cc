// Errors, devices, launches and copies of the emulated runtime.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "internal.h"

namespace heed::emulation {
namespace {

constexpr int driver_version = 12000;
constexpr int max_threads_per_block = 1024;
constexpr int max_block[] = {1024, 1024, 64};
constexpr int max_grid[] = {0x7fffffff, 65535, 65535};
constexpr int max_shared = 48 << 10;  // of a block whose kernel did not opt in to more
constexpr int max_shared_opt_in = 101376;
constexpr int max_threads_per_multiprocessor = 2048;
constexpr int multiprocessors = 4;
constexpr int max_registers = 65536;
constexpr int l2_cache = 4 << 20;
constexpr int memory_bus_width = 256;  // in bits

thread_local cudaError_t last_error = cudaSuccess;
thread_local int selected_device = 0;

struct ErrorName {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorName error_names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not initiated in this stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};
const ErrorName& name_of(cudaError_t error) {
  const auto* found = std::find_if(std::begin(error_names), std::end(error_names),
                                   [=](const ErrorName& name) { return name.error == error; });
  return found == std::end(error_names) ? *std::prev(found) : *found;
}

// Of HEED_EMULATED_COMPUTE_CAPABILITY, ten times the capability; 8.0 otherwise.
int compute_capability() {
  const char* text = std::getenv("HEED_EMULATED_COMPUTE_CAPABILITY");
  return text == nullptr ? 80 : std::atoi(text);
}

// Bytes of dynamic shared memory that kernels have opted in to.
struct OptIns {
  std::mutex mutex;
  std::map<const void*, int> bytes;
};
OptIns& opt_ins() {
  static auto& opt_ins = *new OptIns;
  return opt_ins;
}

std::size_t allowed_shared(const void* kernel) {
  const std::lock_guard lock(opt_ins().mutex);
  const auto found = opt_ins().bytes.find(kernel);
  return static_cast<std::size_t>(found == opt_ins().bytes.end() ? max_shared : found->second);
}

bool is_within(const dim3& size, const int (&limits)[3]) {
  const auto fits = [](unsigned value, int limit) {
    return value >= 1 && value <= static_cast<unsigned>(limit);
  };
  return fits(size.x, limits[0]) && fits(size.y, limits[1]) && fits(size.z, limits[2]);
}

// Whether each side of a copy lies where its kind states, and inside an allocation.
bool allows(cudaMemcpyKind kind, const void* to, std::size_t to_size, const void* from,
            std::size_t from_size) {
  const Place to_place = place_of(to, to_size), from_place = place_of(from, from_size);
  if (to_place == Place::outside || from_place == Place::outside) return false;
  if (kind == cudaMemcpyDefault) return true;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return to_device == (to_place == Place::device) && from_device == (from_place == Place::device);
}

// Copies of memory that is not page-locked do not return before they have used it.
bool is_pageable(const void* address) {
  cudaPointerAttributes attributes;
  return cudaPointerGetAttributes(&attributes, address) == cudaSuccess &&
         attributes.type == cudaMemoryTypeUnregistered;
}

}  // namespace

int current_device() { return selected_device; }

cudaError_t failed(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel,
                   std::function<void()> thread) {
  const dim3& block = config.blockDim;
  if (!is_within(config.gridDim, max_grid) || !is_within(block, max_block) ||
      block.x * block.y * block.z > max_threads_per_block) {
    return failed(cudaErrorInvalidConfiguration);
  }
  if (kernel == nullptr) return failed(cudaErrorInvalidDeviceFunction);
  if (config.dynamicSmemBytes > allowed_shared(kernel)) return failed(cudaErrorInvalidValue);
  return enqueue(config.stream, [grid = config.gridDim, block, bytes = config.dynamicSmemBytes,
                                 device = current_device(), run = std::move(thread)] {
    const MemoryAccess access(device);
    run_grid(grid, block, bytes, run);
  });
}

}  // namespace heed::emulation

using namespace heed::emulation;

// --- Errors and versions ---

const char* cudaGetErrorName(cudaError_t error) { return name_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return name_of(error).text; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  *function = driver_function(symbol);
  if (result != nullptr) {
    *result =
        *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPoint(symbol, function, flags, result);
}

// --- Devices ---

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return device_count() == 0 ? failed(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return failed(cudaErrorInvalidDevice);
  selected_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = selected_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= device_count()) return failed(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "emulated device");
  properties->uuid.bytes[0] = static_cast<char>(device);
  properties->totalGlobalMem = device_memory();
  properties->sharedMemPerBlock = max_shared;
  properties->regsPerBlock = max_registers;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = max_threads_per_block;
  std::copy(std::begin(max_block), std::end(max_block), properties->maxThreadsDim);
  std::copy(std::begin(max_grid), std::end(max_grid), properties->maxGridSize);
  properties->totalConstMem = 64 << 10;
  properties->major = compute_capability() / 10;
  properties->minor = compute_capability() % 10;
  properties->multiProcessorCount = multiprocessors;
  properties->concurrentKernels = 1;
  properties->pciBusID = device;
  properties->unifiedAddressing = 1;
  properties->memoryBusWidth = memory_bus_width;
  properties->l2CacheSize = l2_cache;
  properties->maxThreadsPerMultiProcessor = max_threads_per_multiprocessor;
  properties->sharedMemPerMultiprocessor = max_shared_opt_in + 1024;
  properties->regsPerMultiprocessor = max_registers;
  properties->sharedMemPerBlockOptin = max_shared_opt_in;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= device_count()) return failed(cudaErrorInvalidDevice);
  const std::map<cudaDeviceAttr, int> values = {
      {cudaDevAttrMaxThreadsPerBlock, max_threads_per_block},
      {cudaDevAttrMaxBlockDimX, max_block[0]},
      {cudaDevAttrMaxBlockDimY, max_block[1]},
      {cudaDevAttrMaxBlockDimZ, max_block[2]},
      {cudaDevAttrMaxGridDimX, max_grid[0]},
      {cudaDevAttrMaxGridDimY, max_grid[1]},
      {cudaDevAttrMaxGridDimZ, max_grid[2]},
      {cudaDevAttrMaxSharedMemoryPerBlock, max_shared},
      {cudaDevAttrTotalConstantMemory, 64 << 10},
      {cudaDevAttrWarpSize, warpSize},
      {cudaDevAttrMaxRegistersPerBlock, max_registers},
      {cudaDevAttrClockRate, 1000000},
      {cudaDevAttrMultiProcessorCount, multiprocessors},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrMemoryClockRate, 1000000},
      {cudaDevAttrGlobalMemoryBusWidth, memory_bus_width},
      {cudaDevAttrL2CacheSize, l2_cache},
      {cudaDevAttrMaxThreadsPerMultiProcessor, max_threads_per_multiprocessor},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrComputeCapabilityMajor, compute_capability() / 10},
      {cudaDevAttrComputeCapabilityMinor, compute_capability() % 10},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, max_shared_opt_in + 1024},
      {cudaDevAttrCooperativeLaunch, 0},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, max_shared_opt_in},
  };
  const auto found = values.find(attribute);
  if (found == values.end()) return failed(cudaErrorInvalidValue);
  *value = found->second;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int, int) {
  *can_access = 0;
  return cudaSuccess;
}

// --- Launches ---

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > max_shared_opt_in) return failed(cudaErrorInvalidValue);
  const std::lock_guard lock(opt_ins().mutex);
  opt_ins().bytes[kernel] = std::max(value, max_shared);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block_size,
                                                          std::size_t dynamic_shared) {
  if (block_size < 1 || block_size > max_threads_per_block) return failed(cudaErrorInvalidValue);
  *blocks = max_threads_per_multiprocessor / block_size;
  if (dynamic_shared != 0) {
    const std::size_t by_shared = (max_shared_opt_in + 1024) / (dynamic_shared + 1024);
    *blocks = std::min(*blocks, static_cast<int>(by_shared));
  }
  return cudaSuccess;
}

// --- Copies ---

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > to_pitch || width > from_pitch) return failed(cudaErrorInvalidPitchValue);
  if (!allows(kind, to, (height - 1) * to_pitch + width, from, (height - 1) * from_pitch + width)) {
    return failed(cudaErrorInvalidValue);
  }
  const cudaError_t error = enqueue(stream, [=] {
    const MemoryAccess access;
    for (std::size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<std::byte*>(to) + row * to_pitch,
                   static_cast<const std::byte*>(from) + row * from_pitch, width);
    }
  });
  if (is_pageable(to) || is_pageable(from)) finish_work();
  return error;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, size, from, size, size, 1, kind, stream);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  if (const cudaError_t error = outside_capture(); error != cudaSuccess) return failed(error);
  const cudaError_t error =
      cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
  finish_work();
  return error;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  return cudaMemcpy2D(to, size, from, size, size, 1, kind);
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t size, cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  if (place_of(address, size) != Place::device) return failed(cudaErrorInvalidValue);
  return enqueue(stream, [=] {
    const MemoryAccess access;
    std::memset(address, value, size);
  });
}

cudaError_t cudaMemset(void* address, int value, std::size_t size) {
  if (const cudaError_t error = outside_capture(); error != cudaSuccess) return failed(error);
  return cudaMemsetAsync(address, value, size, nullptr);
}
