// Where memory lies: the processor's, which every function of the program may touch, or an
// accelerator's, which only kernels may. An address says which: memory of the accelerator lies in
// one range of addresses that nothing else has. A process computes on one accelerator at most.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

enum class DeviceKind : std::uint8_t { cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;  // of several accelerators

  bool is_cpu() const { return kind == DeviceKind::cpu; }
  bool operator==(const Device&) const = default;
};

std::string device_name(Device device);  // "cpu", "cuda:0"

// "cpu", "cuda", "cuda:1", or "auto": as cuda where there is one, and cpu elsewhere. "cuda" is the
// first device or, of several processes that mpirun or srun started, one for each. The accelerator
// that it names is ready then. Throws Error{invalid_argument} for other names, Error{unsupported}
// where there is no such device, saying what is missing, and where the process uses another one.
Device open_device(std::string_view name);

// Where models are computed that are loaded without a device: that which was chosen last, or that
// of the environment variable HEED_DEVICE, or the processor. Both throw what open_device throws.
Device default_device();
void set_default_device(std::string_view name);

// The accelerator that this process has opened; cpu: none.
Device opened_device();
std::string device_description(Device device);  // "NVIDIA H100 80GB HBM3, 79.6 GiB"

struct DeviceMemoryUse {
  std::size_t used = 0;     // of tensors
  std::size_t mapped = 0;   // taken from the device
  std::size_t largest = 0;  // that `used` has been
  std::size_t total = 0;    // that the device has
};
DeviceMemoryUse device_memory();

namespace device_addresses {
extern std::atomic<std::uintptr_t> begin, end;  // of the accelerator's memory; 0: there is none
}

#ifdef __EMSCRIPTEN__
inline constexpr bool can_have_accelerators = false;
#else
inline constexpr bool can_have_accelerators = true;
#endif

inline bool is_on_accelerator(const void* address) {
  if constexpr (!can_have_accelerators) return false;
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  return place < device_addresses::end.load(std::memory_order_relaxed) &&
         place >= device_addresses::begin.load(std::memory_order_relaxed);
}

inline Device device_of(const void* address) {
  return is_on_accelerator(address) ? opened_device() : Device{};
}

// Memory of the opened accelerator, aligned to 512 bytes, not zeroed; null for no bytes. Throws
// Error{out_of_memory}. Memory that is given back may be used again by what is launched later.
std::byte* allocate_on_accelerator(std::size_t bytes);
void release_on_accelerator(std::byte* memory) noexcept;

// Between any two places. Copies to the processor return when they are done, others when `from` may
// change.
void copy_bytes(void* to, const void* from, std::size_t bytes);
void clear_bytes(void* memory, std::size_t bytes);  // wherever they are

// Waits for all that was launched.
void synchronize_accelerator();

// A function of the opened accelerator's library by its name, "heed_cuda_" before it. Throws
// Error{unsupported} where it has none of that name.
void* accelerator_function(const char* name);

}  // namespace heed
