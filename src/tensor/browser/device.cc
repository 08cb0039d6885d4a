// A browser's module computes on the processor.
#include "tensor/device.h"

#include <cstring>

#include "base/error.h"

namespace heed {

std::atomic<std::uintptr_t> device_addresses::begin = 0, device_addresses::end = 0;

std::string device_name(Device device) {
  return device.is_cpu() ? "cpu" : fmt::format("cuda:{}", device.index);
}

Device open_device(std::string_view name) {
  require(name == "cpu" || name == "auto", ErrorCode::unsupported,
          "the device is '{}': in a browser, expected cpu", name);
  return {};
}

Device default_device() { return {}; }

void set_default_device(std::string_view name) { open_device(name); }

Device opened_device() { return {}; }

std::string device_description(Device) { return "the processor"; }

DeviceMemoryUse device_memory() { return {}; }

std::byte* allocate_on_accelerator(std::size_t) {
  fail(ErrorCode::unsupported, "a browser has no accelerator");
}

void release_on_accelerator(std::byte*) noexcept {}

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void clear_bytes(void* memory, std::size_t bytes) {
  if (bytes > 0) std::memset(memory, 0, bytes);
}

void synchronize_accelerator() {}

void* accelerator_function(const char*) {
  fail(ErrorCode::unsupported, "a browser has no accelerator");
}

}  // namespace heed
