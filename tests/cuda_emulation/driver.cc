// The emulated driver: virtual memory, and what programs call before it. Contexts are those of the
// runtime, one per device.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda.h"
#include "internal.h"

struct CUctx_st {
  int device;
};

namespace heed::emulation {
namespace {

// Memory of cuMemCreate. It lives until it is released and nowhere mapped. Its bytes are at the
// addresses where it is mapped; between two mappings, here.
struct Physical {
  int device;
  std::size_t size;
  bool is_mapped = false;
  bool is_released = false;
  std::vector<std::byte> bytes;  // empty before the first mapping
};

struct Driver {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> reserved;
  std::map<CUmemGenericAllocationHandle, Physical> physical;
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;
  CUmemGenericAllocationHandle next_handle = 1;
};

Driver& driver() {
  static auto& driver = *new Driver;
  return driver;
}

bool is_device(int device) { return device >= 0 && device < device_count(); }

CUcontext context_of(int device) {
  static auto& contexts = *new std::map<int, CUctx_st>;
  const std::lock_guard lock(driver().mutex);
  return &contexts.emplace(device, CUctx_st{device}).first->second;
}

std::byte* to_pointer(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

// The mapping that begins at an address is of this size.
std::size_t mapped_size(CUmemGenericAllocationHandle handle) {
  return driver().physical.at(handle).size;
}

// Whether [address, address + size) lies in one reserved range.
bool is_reserved(CUdeviceptr address, std::size_t size) {
  auto found = driver().reserved.upper_bound(address);
  if (found == driver().reserved.begin()) return false;
  --found;
  return address + size <= found->first + found->second;
}

// The mappings that fill [address, address + size); empty if there is a hole, or one is cut.
std::vector<CUdeviceptr> mappings(CUdeviceptr address, std::size_t size) {
  std::vector<CUdeviceptr> found;
  CUdeviceptr at = address;
  while (at < address + size) {
    const auto mapping = driver().mapped.find(at);
    if (mapping == driver().mapped.end()) return {};
    found.push_back(at);
    at += mapped_size(mapping->second);
  }
  return at == address + size ? found : std::vector<CUdeviceptr>{};
}

void drop_if_unused(CUmemGenericAllocationHandle handle) {
  const Physical& physical = driver().physical.at(handle);
  if (!physical.is_released || physical.is_mapped) return;
  give_back_memory(physical.device, physical.size);
  driver().physical.erase(handle);
}

// Calls `use` while the host can access a mapped range, which no device can yet.
template <class Use>
void with_access(int device, CUdeviceptr address, std::size_t size, const Use& use) {
  open_range(device, to_pointer(address), size);
  {
    const MemoryAccess access(device);
    use(to_pointer(address));
  }
  close_range(device, to_pointer(address), size);
}

}  // namespace
}  // namespace heed::emulation

using namespace heed::emulation;

CUresult cuInit(unsigned) { return device_count() == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

// Errors have the numbers that they have in the runtime.
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_SUCCESS: *name = "CUDA_SUCCESS"; break;
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NOT_INITIALIZED: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_INVALID_DEVICE: *name = "CUDA_ERROR_INVALID_DEVICE"; break;
    case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case CUDA_ERROR_NOT_PERMITTED: *name = "CUDA_ERROR_NOT_PERMITTED"; break;
    case CUDA_ERROR_NOT_SUPPORTED: *name = "CUDA_ERROR_NOT_SUPPORTED"; break;
    default: *name = "CUDA_ERROR_UNKNOWN";
  }
  return CUDA_SUCCESS;
}

// --- Devices and contexts ---

CUresult cuDeviceGetCount(int* count) {
  *count = device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return CUDA_ERROR_INVALID_DEVICE;
  if (length < 1) return CUDA_ERROR_INVALID_VALUE;
  std::strncpy(name, properties.name, static_cast<std::size_t>(length));
  name[length - 1] = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = device_memory();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
    *value = 1;
    return CUDA_SUCCESS;
  }
  return static_cast<CUresult>(
      cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = context_of(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return context == nullptr ? CUDA_SUCCESS : static_cast<CUresult>(cudaSetDevice(context->device));
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = context_of(current_device());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  *device = current_device();
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  return static_cast<CUresult>(cudaMemGetInfo(free, total));
}

// --- Virtual memory ---

CUresult cuMemGetAllocationGranularity(std::size_t* granularity,
                                       const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  if (granularity == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *granularity = memory_granularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t size, std::size_t alignment,
                             CUdeviceptr, unsigned long long flags) {
  if (address == nullptr || size == 0 || size % memory_granularity != 0 || flags != 0 ||
      (alignment & (alignment - 1)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::byte* reserved = reserve_addresses(size, std::max(alignment, memory_granularity));
  if (reserved == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(reserved);
  const std::lock_guard lock(driver().mutex);
  driver().reserved.emplace(*address, size);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t size) {
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().reserved.find(address);
  if (found == driver().reserved.end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapping = driver().mapped.lower_bound(address);
  if (mapping != driver().mapped.end() && mapping->first < address + size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  driver().reserved.erase(found);
  release_addresses(to_pointer(address), size);
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  if (handle == nullptr || properties == nullptr || flags != 0 || size == 0 ||
      size % memory_granularity != 0 || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!is_device(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (outside_capture() != cudaSuccess) return CUDA_ERROR_NOT_PERMITTED;
  if (!take_memory(properties->location.id, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(driver().mutex);
  *handle = driver().next_handle++;
  driver().physical.emplace(*handle, Physical{properties->location.id, size, false, false, {}});
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().physical.find(handle);
  if (found == driver().physical.end() || found->second.is_released) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  found->second.is_released = true;
  drop_if_unused(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t size, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().physical.find(handle);
  if (found == driver().physical.end() || found->second.is_released || flags != 0 || offset != 0 ||
      size != found->second.size || address % memory_granularity != 0 ||
      !is_reserved(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Physical& physical = found->second;
  if (physical.is_mapped) return CUDA_ERROR_NOT_SUPPORTED;  // twice: the emulation lacks this
  const auto after = driver().mapped.lower_bound(address);
  const bool hits_next = after != driver().mapped.end() && after->first < address + size;
  const bool hits_previous =
      after != driver().mapped.begin() &&
      std::prev(after)->first + mapped_size(std::prev(after)->second) > address;
  if (hits_next || hits_previous) return CUDA_ERROR_INVALID_VALUE;
  with_access(physical.device, address, size, [&](std::byte* bytes) {
    if (physical.bytes.empty()) {
      std::memset(bytes, 0xff, size);
    } else {
      std::memcpy(bytes, physical.bytes.data(), size);
    }
  });
  physical.bytes = {};
  physical.is_mapped = true;
  driver().mapped.emplace(address, handle);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t size) {
  finish_work();
  const std::lock_guard lock(driver().mutex);
  const std::vector<CUdeviceptr> unmapped = mappings(address, size);
  if (unmapped.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (const CUdeviceptr at : unmapped) {
    const CUmemGenericAllocationHandle handle = driver().mapped.at(at);
    Physical& physical = driver().physical.at(handle);
    for (int device = 0; device < device_count(); ++device) {
      close_range(device, to_pointer(at), physical.size);
    }
    with_access(physical.device, at, physical.size, [&](const std::byte* bytes) {
      if (!physical.is_released) physical.bytes.assign(bytes, bytes + physical.size);
    });
    forget_contents(to_pointer(at), physical.size);
    physical.is_mapped = false;
    driver().mapped.erase(at);
    drop_if_unused(handle);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* descriptions,
                        std::size_t count) {
  const std::lock_guard lock(driver().mutex);
  if (mappings(address, size).empty() || descriptions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const CUmemAccessDesc& description = descriptions[i];
    if (description.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !is_device(description.location.id)) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    if (description.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      close_range(description.location.id, to_pointer(address), size);
    } else {
      open_range(description.location.id, to_pointer(address), size);
    }
  }
  return CUDA_SUCCESS;
}

// --- Entry points ---

namespace heed::emulation {

void* driver_function(const char* name) {
#define HEED_FUNCTION(function) \
  { #function, reinterpret_cast < void*>(&(function)) }
  static const std::map<std::string_view, void*> functions = {
      HEED_FUNCTION(cuInit),
      HEED_FUNCTION(cuDriverGetVersion),
      HEED_FUNCTION(cuGetErrorString),
      HEED_FUNCTION(cuGetErrorName),
      HEED_FUNCTION(cuDeviceGetCount),
      HEED_FUNCTION(cuDeviceGet),
      HEED_FUNCTION(cuDeviceGetName),
      HEED_FUNCTION(cuDeviceTotalMem),
      HEED_FUNCTION(cuDeviceGetAttribute),
      HEED_FUNCTION(cuDevicePrimaryCtxRetain),
      HEED_FUNCTION(cuDevicePrimaryCtxRelease),
      HEED_FUNCTION(cuCtxSetCurrent),
      HEED_FUNCTION(cuCtxGetCurrent),
      HEED_FUNCTION(cuCtxGetDevice),
      HEED_FUNCTION(cuMemGetInfo),
      HEED_FUNCTION(cuMemAddressReserve),
      HEED_FUNCTION(cuMemAddressFree),
      HEED_FUNCTION(cuMemCreate),
      HEED_FUNCTION(cuMemRelease),
      HEED_FUNCTION(cuMemMap),
      HEED_FUNCTION(cuMemUnmap),
      HEED_FUNCTION(cuMemSetAccess),
      HEED_FUNCTION(cuMemGetAllocationGranularity),
  };
#undef HEED_FUNCTION
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

}  // namespace heed::emulation
