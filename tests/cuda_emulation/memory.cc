// Memory of the emulated devices: ranges of addresses that the host cannot access, except while a
// MemoryAccess lives. So a test in which host code reads a device's memory ends at once.
//
// What is new holds 0xFF in each byte, a not-a-number, and so does a gap after each allocation:
// kernels that read too early or too far give not-a-numbers, and cudaFree finds writes to the gap.
// Under AddressSanitizer gaps and freed memory are poisoned too.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "internal.h"
#include "sanitizers.h"

namespace heed::emulation {
namespace {

constexpr std::size_t alignment = 256;  // of cudaMalloc
constexpr std::size_t gap = 256;        // after an allocation
constexpr std::size_t addresses_per_device = std::size_t{64} << 30;

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// An environment variable's value, or `otherwise`.
std::size_t setting(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "CUDA emulation: %s\n", what);
  std::abort();
}

void protect(std::byte* address, std::size_t size, int protection) {
  if (size != 0 && mprotect(address, size, protection) != 0) stop("mprotect failed");
}

struct Device {
  std::byte* addresses = nullptr;  // of cudaMalloc
  std::size_t used = 0;            // of these, up to the end of the last page
  std::map<std::byte*, std::size_t> allocations;
  std::map<std::byte*, std::size_t> ranges;  // of virtual memory, neighbours merged
  std::size_t taken = 0;                     // bytes of its memory
};

struct Memory {
  std::recursive_mutex mutex;
  std::vector<Device> devices{static_cast<std::size_t>(device_count())};
  std::map<std::byte*, std::size_t> reserved;  // all addresses of devices
  std::map<void*, std::size_t> host;           // page-locked
  const bool is_protected = setting("HEED_EMULATED_PROTECTION", 1) != 0;
  const int closed = is_protected ? PROT_NONE : PROT_READ | PROT_WRITE;

  Device& operator[](int device) { return devices[static_cast<std::size_t>(device)]; }

  void open(Device& device) {
    protect(device.addresses, device.used, PROT_READ | PROT_WRITE);
    for (const auto& [address, size] : device.ranges) {
      protect(address, size, PROT_READ | PROT_WRITE);
    }
  }
  void close(Device& device) {
    protect(device.addresses, device.used, closed);
    for (const auto& [address, size] : device.ranges) protect(address, size, closed);
  }
};

// Never destroyed: what programs free at their very end still finds it.
Memory& memory() {
  static auto& memory = *new Memory;
  return memory;
}

// The entry of a map of ranges that holds the address, or its end.
template <class Ranges>
auto range_of(Ranges& ranges, const std::byte* address) {
  auto found = ranges.upper_bound(const_cast<std::byte*>(address));
  if (found == ranges.begin()) return ranges.end();
  --found;
  return address < found->first + found->second ? found : ranges.end();
}

// The first place of `size` bytes among the allocations of a device.
std::byte* first_fit(const Device& device, std::size_t size) {
  std::byte* place = device.addresses;
  for (const auto& [address, taken] : device.allocations) {
    if (place + size + gap <= address) break;
    place = address + round_up(taken + gap, alignment);
  }
  return place + size + gap <= device.addresses + addresses_per_device ? place : nullptr;
}

std::byte* allocate(Device& device, std::size_t size) {
  if (device.addresses == nullptr) {
    device.addresses = reserve_addresses(addresses_per_device, memory_granularity);
    if (device.addresses == nullptr) return nullptr;
  }
  std::byte* address = first_fit(device, size);
  if (address == nullptr) return nullptr;
  const std::size_t end = static_cast<std::size_t>(address - device.addresses) + size + gap;
  device.used = std::max(device.used, round_up(end, static_cast<std::size_t>(getpagesize())));
  protect(device.addresses, device.used, PROT_READ | PROT_WRITE);
  unpoison(address, size + gap);
  std::memset(address, 0xff, size + gap);
  poison(address + size, gap);
  protect(device.addresses, device.used, memory().closed);
  device.allocations.emplace(address, size);
  return address;
}

// Whether nothing was written to the gap of an allocation.
bool gap_is_whole(std::byte* address, std::size_t size) {
  unpoison(address + size, gap);
  const bool is_whole = std::all_of(address + size, address + size + gap,
                                    [](std::byte value) { return value == std::byte{0xff}; });
  poison(address + size, gap);
  return is_whole;
}

}  // namespace

int device_count() {
  static const auto count = static_cast<int>(setting("HEED_EMULATED_DEVICES", 1));
  return count;
}

std::size_t device_memory() {
  static const std::size_t bytes = setting("HEED_EMULATED_MEMORY_MIB", 4096) << 20;
  return bytes;
}

std::size_t free_memory(int device) {
  const std::lock_guard lock(memory().mutex);
  return device_memory() - memory()[device].taken;
}

MemoryAccess::MemoryAccess(int begin, int end) : lock_(memory().mutex), begin_(begin), end_(end) {
  for (int device = begin_; device < end_; ++device) memory().open(memory()[device]);
}

MemoryAccess::~MemoryAccess() {
  if (!memory().is_protected) return;
  for (int device = begin_; device < end_; ++device) memory().close(memory()[device]);
}

Place place_of(const void* address, std::size_t size, int* device) {
  const std::lock_guard lock(memory().mutex);
  const auto* begin = static_cast<const std::byte*>(address);
  if (range_of(memory().reserved, begin) == memory().reserved.end()) return Place::host;
  for (int i = 0; i < device_count(); ++i) {
    for (const auto* ranges : {&memory()[i].allocations, &memory()[i].ranges}) {
      const auto found = range_of(*ranges, begin);
      if (found == ranges->end()) continue;
      if (device != nullptr) *device = i;
      return begin + size <= found->first + found->second ? Place::device : Place::outside;
    }
  }
  return Place::outside;
}

std::byte* reserve_addresses(std::size_t size, std::size_t alignment_of_range) {
  const std::lock_guard lock(memory().mutex);
  void* mapped = mmap(nullptr, size + alignment_of_range, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  const std::size_t skipped =
      round_up(reinterpret_cast<std::uintptr_t>(begin), alignment_of_range) -
      reinterpret_cast<std::uintptr_t>(begin);
  if (skipped != 0) munmap(begin, skipped);
  std::byte* address = begin + skipped;
  if (skipped != alignment_of_range) munmap(address + size, alignment_of_range - skipped);
  madvise(address, size, MADV_HUGEPAGE);  // fewer entries for mprotect to change
  madvise(address, size, MADV_DONTDUMP);
  memory().reserved.emplace(address, size);
  return address;
}

void release_addresses(std::byte* address, std::size_t size) {
  const std::lock_guard lock(memory().mutex);
  munmap(address, size);
  memory().reserved.erase(address);
}

bool take_memory(int device, std::size_t size) {
  const std::lock_guard lock(memory().mutex);
  if (size > free_memory(device)) return false;
  memory()[device].taken += size;
  return true;
}

void give_back_memory(int device, std::size_t size) {
  const std::lock_guard lock(memory().mutex);
  memory()[device].taken -= size;
}

void open_range(int device, std::byte* address, std::size_t size) {
  const std::lock_guard lock(memory().mutex);
  close_range(device, address, size);
  auto& ranges = memory()[device].ranges;
  auto range = ranges.emplace(address, size).first;
  const auto merge_next = [&ranges](auto at) {
    const auto next = std::next(at);
    if (next == ranges.end() || at->first + at->second != next->first) return;
    at->second += next->second;
    ranges.erase(next);
  };
  merge_next(range);
  if (range != ranges.begin()) merge_next(std::prev(range));
}

void close_range(int device, std::byte* address, std::size_t size) {
  const std::lock_guard lock(memory().mutex);
  auto& ranges = memory()[device].ranges;
  std::map<std::byte*, std::size_t> left;
  for (const auto& [begin, length] : ranges) {
    if (begin < address) {
      left[begin] = std::min(length, static_cast<std::size_t>(address - begin));
    }
    std::byte* end = begin + length;
    if (end > address + size) {
      std::byte* from = std::max(begin, address + size);
      left[from] = static_cast<std::size_t>(end - from);
    }
  }
  ranges = std::move(left);
}

void forget_contents(std::byte* address, std::size_t size) {
  madvise(address, size, MADV_DONTNEED);
}

}  // namespace heed::emulation

using namespace heed::emulation;

cudaError_t cudaMalloc(void** address, std::size_t size) {
  if (address == nullptr) return failed(cudaErrorInvalidValue);
  *address = nullptr;
  if (const cudaError_t error = outside_capture(); error != cudaSuccess) return failed(error);
  if (size == 0) return cudaSuccess;
  const std::lock_guard lock(memory().mutex);
  const int device = current_device();
  if (!take_memory(device, size)) return failed(cudaErrorMemoryAllocation);
  *address = allocate(memory()[device], size);
  if (*address != nullptr) return cudaSuccess;
  give_back_memory(device, size);
  return failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void* address) {
  if (address == nullptr) return cudaSuccess;
  if (const cudaError_t error = outside_capture(); error != cudaSuccess) return failed(error);
  finish_work();
  const MemoryAccess access;
  for (int i = 0; i < device_count(); ++i) {
    Device& device = memory()[i];
    const auto found = device.allocations.find(static_cast<std::byte*>(address));
    if (found == device.allocations.end()) continue;
    const std::size_t size = found->second;
    if (!gap_is_whole(found->first, size)) stop("a kernel wrote beyond the end of an allocation");
    std::memset(address, 0xff, size);
    poison(address, size);
    device.allocations.erase(found);
    give_back_memory(i, size);
    return cudaSuccess;
  }
  return failed(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** address, std::size_t size, unsigned) {
  if (address == nullptr) return failed(cudaErrorInvalidValue);
  *address = std::aligned_alloc(4096, round_up(std::max<std::size_t>(size, 1), 4096));
  if (*address == nullptr) return failed(cudaErrorMemoryAllocation);
  const std::lock_guard lock(memory().mutex);
  memory().host.emplace(*address, size);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** address, std::size_t size) {
  return cudaHostAlloc(address, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* address) {
  if (address == nullptr) return cudaSuccess;
  finish_work();
  const std::lock_guard lock(memory().mutex);
  if (memory().host.erase(address) == 0) return failed(cudaErrorInvalidValue);
  std::free(address);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* address, std::size_t size, unsigned) {
  const std::lock_guard lock(memory().mutex);
  if (address == nullptr || size == 0 || !memory().host.emplace(address, size).second) {
    return failed(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
  const std::lock_guard lock(memory().mutex);
  return memory().host.erase(address) == 0 ? failed(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = free_memory(current_device());
  *total = device_memory();
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const std::lock_guard lock(memory().mutex);
  int device = current_device();
  void* pointer = const_cast<void*>(address);
  *attributes = {cudaMemoryTypeUnregistered, device, nullptr, pointer};
  if (place_of(address, 0, &device) == Place::device) {
    *attributes = {cudaMemoryTypeDevice, device, pointer, nullptr};
  }
  for (const auto& [begin, size] : memory().host) {
    const auto offset = static_cast<const std::byte*>(address) - static_cast<std::byte*>(begin);
    if (offset >= 0 && static_cast<std::size_t>(offset) < size) {
      *attributes = {cudaMemoryTypeHost, device, pointer, pointer};
    }
  }
  return cudaSuccess;
}
