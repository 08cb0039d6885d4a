// What the parts of the emulation share.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>

#include "cuda_runtime.h"

namespace heed::emulation {

// --- threads.cc ---

// Runs all threads of a grid, block by block. The caller holds a MemoryAccess.
void run_grid(const dim3& grid, const dim3& block, std::size_t dynamic_shared_bytes,
              const std::function<void()>& thread);

// --- memory.cc ---

inline constexpr std::size_t memory_granularity = std::size_t{2} << 20;  // of virtual memory

int device_count();           // HEED_EMULATED_DEVICES, or 1
std::size_t device_memory();  // of each, in bytes: HEED_EMULATED_MEMORY_MIB, or 4 GiB
std::size_t free_memory(int device);

// Memory of a device can be accessed while one of these lives. They exclude one another. With
// HEED_EMULATED_PROTECTION=0 it can always be.
class MemoryAccess {
 public:
  explicit MemoryAccess(int device) : MemoryAccess(device, device + 1) {}
  MemoryAccess() : MemoryAccess(0, device_count()) {}  // of all devices
  ~MemoryAccess();
  MemoryAccess(const MemoryAccess&) = delete;
  MemoryAccess& operator=(const MemoryAccess&) = delete;

 private:
  MemoryAccess(int begin, int end);
  std::lock_guard<std::recursive_mutex> lock_;
  int begin_, end_;
};

// Where an address lies.
enum class Place {
  host,
  device,   // all bytes are in one allocation, or in mapped virtual memory
  outside,  // an address of a device, but not of an allocation, or beyond its end
};
Place place_of(const void* address, std::size_t size, int* device = nullptr);

// For virtual memory: addresses without access; a part of a device's memory, false if there is not
// so much; and ranges of addresses that MemoryAccess opens.
std::byte* reserve_addresses(std::size_t size, std::size_t alignment);
void release_addresses(std::byte* address, std::size_t size);
bool take_memory(int device, std::size_t size);
void give_back_memory(int device, std::size_t size);
void open_range(int device, std::byte* address, std::size_t size);
void close_range(int device, std::byte* address, std::size_t size);
void forget_contents(std::byte* address, std::size_t size);

// --- runtime.cc ---

int current_device();
// Stores an error as this thread's last one and returns it; success leaves that as it is.
cudaError_t failed(cudaError_t error);

// --- streams.cc ---

// Runs the work, or records it if the stream is captured.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
// Does what waits, if streams are lazy. The caller holds no lock.
void finish_work();
// An error if a capture forbids calls as cudaMalloc and cudaDeviceSynchronize, which also makes
// the capture invalid.
cudaError_t outside_capture();

// --- driver.cc ---

// A function of the driver by its name, or null.
void* driver_function(const char* name);

}  // namespace heed::emulation
