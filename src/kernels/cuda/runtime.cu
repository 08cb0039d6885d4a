// The device: its memory, its stream, and how its errors are said.
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include <mutex>

#include "kernels/cuda/device_code.h"

namespace heed_cuda {
namespace {

struct Device {
  int index = -1;
  int multiprocessors = 0;
  size_t chunk = 0;
  size_t addresses = 0;
  CUdeviceptr begin = 0;
  cudaStream_t stream = nullptr;
  cudaStream_t recorded = nullptr;  // which is only captured
  CUmemAllocationProp properties = {};
};
Device device;

// Whether this thread records.
thread_local bool recording = false;

// What was said last, for messages that are put together; each thread has its own.
thread_local char message[384];

HeedCudaResult said(const char* what, int number, int count) {
  snprintf(message, sizeof message, what, number, count);
  return message;
}

HeedCudaResult driver_result(CUresult result) {
  if (result == CUDA_SUCCESS) return nullptr;
  const char* text = nullptr;
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown error";
  return text;
}

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Large enough that memory is mapped in few calls, small enough that little of it lies idle.
constexpr size_t wanted_chunk = size_t{32} << 20;

HeedCudaResult reserve_addresses(size_t total, HeedCudaDevice* opened) {
  device.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  device.properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  device.properties.location.id = device.index;
  size_t granularity = 0;
  HeedCudaResult failed = driver_result(cuMemGetAllocationGranularity(
      &granularity, &device.properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  if (failed != nullptr) return failed;
  device.chunk = rounded_up(total >= (size_t{8} << 30) ? wanted_chunk : granularity, granularity);
  // Twice the memory, so that gaps between blocks never matter.
  device.addresses = rounded_up(2 * total, device.chunk);
  opened->addresses = device.addresses;
  failed = driver_result(cuMemAddressReserve(&device.begin, device.addresses, device.chunk, 0, 0));
  if (failed != nullptr) return failed;
  opened->begin = reinterpret_cast<void*>(device.begin);
  opened->chunk = device.chunk;
  return nullptr;
}

HeedCudaResult map_chunk(CUdeviceptr at, int* out_of_memory) {
  CUmemGenericAllocationHandle memory = 0;
  const CUresult created = cuMemCreate(&memory, device.chunk, &device.properties, 0);
  if (created == CUDA_ERROR_OUT_OF_MEMORY) *out_of_memory = 1;
  HeedCudaResult failed = driver_result(created);
  if (failed != nullptr) return failed;
  failed = driver_result(cuMemMap(at, device.chunk, 0, memory, 0));
  // The mapping keeps the memory.
  const HeedCudaResult released = driver_result(cuMemRelease(memory));
  if (failed != nullptr) return failed;
  CUmemAccessDesc access = {};
  access.location = device.properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  failed = driver_result(cuMemSetAccess(at, device.chunk, &access, 1));
  if (failed == nullptr) return released;
  cuMemUnmap(at, device.chunk);
  return failed;
}

bool is_on_device(const void* address) {
  const auto place = reinterpret_cast<CUdeviceptr>(address);
  return place >= device.begin && place < device.begin + device.addresses;
}

// What the processor gives to kernels, such as tokens and lists of sequences, goes by way of memory
// that stays until it has been read: a ring, whose end waits for all that was launched.
constexpr size_t staging_bytes = size_t{16} << 20;
constexpr size_t staged_bytes = staging_bytes / 8;

struct Staging {
  std::mutex mutex;
  char* ring = nullptr;
  size_t next = 0;
};
Staging staging;

HeedCudaResult copy_staged(void* to, const void* from, size_t bytes) {
  const std::lock_guard<std::mutex> lock(staging.mutex);
  if (staging.ring == nullptr) {
    void* memory = nullptr;
    const HeedCudaResult failed = result_of(cudaMallocHost(&memory, staging_bytes));
    if (failed != nullptr) return failed;
    staging.ring = static_cast<char*>(memory);
  }
  if (staging.next + bytes > staging_bytes) {
    const HeedCudaResult failed = result_of(cudaStreamSynchronize(device.stream));
    if (failed != nullptr) return failed;
    staging.next = 0;
  }
  char* const staged = staging.ring + staging.next;
  staging.next += rounded_up(bytes, 64);
  memcpy(staged, from, bytes);
  return result_of(cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, device.stream));
}

__global__ void count_repetition(int* counter) { ++*counter; }

// A graph of all that was captured since the beginning.
HeedCudaResult graph_of_recording(cudaGraphExec_t* executable) {
  cudaGraph_t graph = nullptr;
  HeedCudaResult failed = result_of(cudaStreamEndCapture(device.recorded, &graph));
  if (failed != nullptr) return failed;
  if (executable != nullptr) failed = result_of(cudaGraphInstantiate(executable, graph, 0));
  const HeedCudaResult destroyed = result_of(cudaGraphDestroy(graph));
  return failed != nullptr ? failed : destroyed;
}

}  // namespace

cudaStream_t stream() { return recording ? device.recorded : device.stream; }

cudaError_t use_device() { return cudaSetDevice(device.index); }

int multiprocessors() { return device.multiprocessors; }

}  // namespace heed_cuda

using heed_cuda::device;
using heed_cuda::result_of;

extern "C" {

int heed_cuda_version(void) { return HEED_CUDA_VERSION; }

HeedCudaResult heed_cuda_open(int index, HeedCudaDevice* opened) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) {
    snprintf(heed_cuda::message, sizeof heed_cuda::message,
             "CUDA finds no device: %s (is NVIDIA's driver installed?)",
             cudaGetErrorString(counted));
    return heed_cuda::message;
  }
  if (index < 0 && count > 0) index = (-1 - index) % count;
  if (index >= count) {
    return heed_cuda::said("there is no device %d: CUDA finds %d, counted from 0", index, count);
  }
  device.index = index;
  HeedCudaResult failed = result_of(cudaSetDevice(index));
  if (failed != nullptr) return failed;
  failed = result_of(cudaFree(nullptr));  // starts the runtime on the device
  if (failed != nullptr) return failed;
  cudaDeviceProp properties = {};
  failed = result_of(cudaGetDeviceProperties(&properties, index));
  if (failed != nullptr) return failed;
  // Products of bf16 by tensor cores: Ampere and later.
  if (properties.major < 8) {
    return heed_cuda::said("its compute capability is %d.%d: expected 8.0 or more",
                           properties.major, properties.minor);
  }
  device.multiprocessors = properties.multiProcessorCount;
  failed = result_of(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
  if (failed != nullptr) return failed;
  opened->total = properties.totalGlobalMem;
  opened->multiprocessors = properties.multiProcessorCount;
  opened->index = index;
  snprintf(opened->name, sizeof opened->name, "%s", properties.name);
  return heed_cuda::reserve_addresses(properties.totalGlobalMem, opened);
}

HeedCudaResult heed_cuda_map(size_t offset, size_t bytes, int* out_of_memory) {
  HeedCudaResult failed = result_of(heed_cuda::use_device());
  for (size_t done = 0; failed == nullptr && done < bytes; done += device.chunk) {
    failed = heed_cuda::map_chunk(device.begin + offset + done, out_of_memory);
    if (failed == nullptr) continue;
    for (size_t back = 0; back < done; back += device.chunk) {
      cuMemUnmap(device.begin + offset + back, device.chunk);
    }
  }
  return failed;
}

HeedCudaResult heed_cuda_unmap(size_t offset, size_t bytes) {
  HeedCudaResult failed = heed_cuda_synchronize();
  for (size_t done = 0; failed == nullptr && done < bytes; done += device.chunk) {
    failed = heed_cuda::driver_result(cuMemUnmap(device.begin + offset + done, device.chunk));
  }
  return failed;
}

HeedCudaResult heed_cuda_copy_bytes(void* to, const void* from, size_t bytes) {
  HeedCudaResult failed = result_of(heed_cuda::use_device());
  if (failed != nullptr) return failed;
  if (!heed_cuda::is_on_device(from) && bytes <= heed_cuda::staged_bytes) {
    return heed_cuda::copy_staged(to, from, bytes);
  }
  const bool stays = heed_cuda::is_on_device(to) && heed_cuda::is_on_device(from);
  if (stays) {
    return result_of(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, heed_cuda::stream()));
  }
  if (heed_cuda::recording && heed_cuda::is_on_device(from)) {
    return "what is recorded is not there to be copied to the processor";
  }
  failed = result_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, device.stream));
  if (failed != nullptr) return failed;
  // Memory of the processor that was read or written must not be so any more.
  return result_of(cudaStreamSynchronize(device.stream));
}

HeedCudaResult heed_cuda_clear_bytes(void* memory, size_t bytes) {
  const HeedCudaResult failed = result_of(heed_cuda::use_device());
  if (failed != nullptr) return failed;
  return result_of(cudaMemsetAsync(memory, 0, bytes, heed_cuda::stream()));
}

HeedCudaResult heed_cuda_synchronize(void) {
  if (heed_cuda::recording) return "what is recorded cannot be waited for";
  const HeedCudaResult failed = result_of(heed_cuda::use_device());
  if (failed != nullptr) return failed;
  return result_of(cudaStreamSynchronize(device.stream));
}

HeedCudaResult heed_cuda_wait_for_all(void) {
  if (heed_cuda::recording) return "what is recorded cannot be waited for";
  const HeedCudaResult failed = result_of(heed_cuda::use_device());
  if (failed != nullptr) return failed;
  return result_of(cudaDeviceSynchronize());
}

HeedCudaResult heed_cuda_begin_recording(void) {
  HeedCudaResult failed = result_of(heed_cuda::use_device());
  if (failed == nullptr && device.recorded == nullptr) {
    failed = result_of(cudaStreamCreateWithFlags(&device.recorded, cudaStreamNonBlocking));
  }
  if (failed != nullptr) return failed;
  // Relaxed: what is not launched, such as mapping memory, goes on meanwhile.
  failed = result_of(cudaStreamBeginCapture(device.recorded, cudaStreamCaptureModeRelaxed));
  heed_cuda::recording = failed == nullptr;
  return failed;
}

HeedCudaResult heed_cuda_end_recording(int* counter, void** recording) {
  HeedCudaResult failed = nullptr;
  if (recording != nullptr) {
    failed = heed_cuda::launch(heed_cuda::count_repetition, dim3(1), dim3(1), 0, counter);
  }
  heed_cuda::recording = false;
  cudaGraphExec_t executable = nullptr;
  const HeedCudaResult ended =
      heed_cuda::graph_of_recording(recording != nullptr ? &executable : nullptr);
  if (failed == nullptr) failed = ended;
  if (failed == nullptr && recording != nullptr) *recording = executable;
  return failed;
}

HeedCudaResult heed_cuda_repeat_recording(void* recording) {
  const HeedCudaResult failed = result_of(heed_cuda::use_device());
  if (failed != nullptr) return failed;
  return result_of(cudaGraphLaunch(static_cast<cudaGraphExec_t>(recording), device.stream));
}

HeedCudaResult heed_cuda_forget_recording(void* recording) {
  return result_of(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(recording)));
}

}  // extern "C"
