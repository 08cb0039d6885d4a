#include "tensor/device.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/error.h"
#include "tensor/device_library.h"
#include "tensor/device_pool.h"
#include "tensor/device_recording.h"

namespace heed {

std::atomic<std::uintptr_t> device_addresses::begin = 0, device_addresses::end = 0;

namespace {

constexpr const char* library_name = "heed_cuda.so";

// The library, and the device that it has opened; both for the rest of the process.
struct Accelerator {
  std::string path;
  void* library = nullptr;
  Device device;
  HeedCudaDevice properties{};
  decltype(&heed_cuda_map) map = nullptr;
  decltype(&heed_cuda_unmap) unmap = nullptr;
  decltype(&heed_cuda_copy_bytes) copy = nullptr;
  decltype(&heed_cuda_clear_bytes) clear = nullptr;
  decltype(&heed_cuda_synchronize) synchronize = nullptr;
  std::mutex pool_mutex;
  std::optional<DevicePool> pool;
};

std::mutex opening;
std::atomic<Accelerator*> opened = nullptr;  // once it is set, it stays to the end of the process

// Beside the program, or the module that this function is in.
std::vector<std::filesystem::path> library_places() {
  std::vector<std::filesystem::path> places;
  if (const char* const given = std::getenv("HEED_CUDA_LIBRARY")) return {given};
  std::error_code error;
  std::vector<std::filesystem::path> folders;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path());
  Dl_info module{};
  if (dladdr(reinterpret_cast<const void*>(&library_name), &module) != 0 &&
      module.dli_fname != nullptr) {
    folders.push_back(std::filesystem::path(module.dli_fname).parent_path());
  }
  for (const auto& folder : folders) {
    places.push_back(folder / library_name);
    places.push_back(folder / "../lib/heed" / library_name);
  }
  return places;
}

std::filesystem::path library_path() {
  std::error_code error;
  for (const auto& path : library_places()) {
    if (std::filesystem::exists(path, error)) return path;
  }
  return {};
}

template <class Function>
Function function_of(const Accelerator& accelerator, const char* name) {
  void* const found = dlsym(accelerator.library, name);
  require(found != nullptr, ErrorCode::unsupported,
          "'{}' has no function {}: it belongs to another heed; build or install both together",
          accelerator.path, name);
  return reinterpret_cast<Function>(found);
}

void require_done(HeedCudaResult result, std::string_view what) {
  require(result == nullptr, ErrorCode::unsupported, "CUDA: {} failed: {}", what, result);
}

std::unique_ptr<Accelerator> open_library(Device device) {
  const std::filesystem::path path = library_path();
  require(!path.empty(), ErrorCode::unsupported,
          "{} cannot be used: this heed has no {}, which is built where CUDA's compiler is found "
          "(docs/gpu.md); without it, choose the device cpu",
          device_name(device), library_name);
  auto accelerator = std::make_unique<Accelerator>();
  accelerator->path = path.string();
  accelerator->device = device;
  accelerator->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (accelerator->library == nullptr) {
    fail(ErrorCode::unsupported, "{} cannot be used: {}", device_name(device), dlerror());
  }
  const int version =
      function_of<decltype(&heed_cuda_version)>(*accelerator, "heed_cuda_version")();
  require(version == HEED_CUDA_VERSION, ErrorCode::unsupported,
          "{} cannot be used: '{}' has version {}, and this heed expects {}; build or install both "
          "together",
          device_name(device), accelerator->path, version, HEED_CUDA_VERSION);
  const HeedCudaResult result = function_of<decltype(&heed_cuda_open)>(
      *accelerator, "heed_cuda_open")(device.index, &accelerator->properties);
  require(result == nullptr, ErrorCode::unsupported, "{} cannot be used: {}", device_name(device),
          result);
  accelerator->map = function_of<decltype(&heed_cuda_map)>(*accelerator, "heed_cuda_map");
  accelerator->unmap = function_of<decltype(&heed_cuda_unmap)>(*accelerator, "heed_cuda_unmap");
  accelerator->copy =
      function_of<decltype(&heed_cuda_copy_bytes)>(*accelerator, "heed_cuda_copy_bytes");
  accelerator->clear =
      function_of<decltype(&heed_cuda_clear_bytes)>(*accelerator, "heed_cuda_clear_bytes");
  accelerator->synchronize =
      function_of<decltype(&heed_cuda_synchronize)>(*accelerator, "heed_cuda_synchronize");
  return accelerator;
}

void make_pool(Accelerator& accelerator) {
  const HeedCudaDevice& properties = accelerator.properties;
  const auto map_chunks = [map = accelerator.map](std::size_t offset, std::size_t bytes) {
    int out_of_memory = 0;
    const HeedCudaResult result = map(offset, bytes, &out_of_memory);
    if (out_of_memory == 0) require_done(result, "mapping memory");
    return result == nullptr;
  };
  // After a kernel that failed, nothing can be given back.
  const auto unmap_chunks = [unmap = accelerator.unmap](std::size_t offset, std::size_t bytes) {
    return unmap(offset, bytes) == nullptr;
  };
  accelerator.pool.emplace(
      properties.addresses,
      DevicePool::Chunks{.bytes = properties.chunk, .map = map_chunks, .unmap = unmap_chunks},
      properties.total / 8);
  const auto begin = reinterpret_cast<std::uintptr_t>(properties.begin);
  device_addresses::begin = begin;
  device_addresses::end = begin + properties.addresses;
}

// Which of the processes of its machine this one is, as Open MPI, MPICH or Slurm started it.
int local_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) continue;
    const std::string_view digits(text);
    int rank = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error == std::errc() && end == digits.data() + digits.size() && rank >= 0) return rank;
  }
  return 0;
}

Device parse_device(std::string_view name) {
  if (name == "cpu") return {};
  Device device{DeviceKind::cuda, 0};
  const auto refuse = [&] {
    fail(ErrorCode::invalid_argument,
         "the device is '{}': expected cpu, cuda, cuda with a number such as cuda:1, or auto",
         name);
  };
  if (!name.starts_with("cuda")) refuse();
  std::string_view number = name.substr(4);
  if (number.empty()) {
    device.index = -1 - local_rank();
    return device;
  }
  if (number.front() != ':' || number.size() == 1) refuse();
  number.remove_prefix(1);
  const char* const last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, device.index);
  if (error != std::errc() || end != last || device.index < 0) refuse();
  return device;
}

Accelerator& accelerator() {
  Accelerator* const accelerator = opened.load();
  check(accelerator != nullptr, "an accelerator has been opened");
  return *accelerator;
}

}  // namespace

std::string device_name(Device device) {
  if (device.is_cpu()) return "cpu";
  return device.index < 0 ? "cuda" : fmt::format("cuda:{}", device.index);
}

Device open_device(std::string_view name) {
  if (name == "auto") {
    if (!opened_device().is_cpu()) return opened_device();
    // Where nothing of CUDA is installed, not even the library is looked for in vain.
    if (opened_device().is_cpu() && library_path().empty()) return {};
    try {
      return open_device("cuda");
    } catch (const Error&) {
      return {};
    }
  }
  const Device device = parse_device(name);
  if (device.is_cpu()) return device;
  const std::lock_guard lock(opening);
  if (opened == nullptr) {
    std::unique_ptr<Accelerator> accelerator = open_library(device);
    make_pool(*accelerator);
    accelerator->device.index = accelerator->properties.index;
    opened = accelerator.release();
  }
  require(device.index < 0 || opened_device() == device, ErrorCode::unsupported,
          "this process computes on {}, and cannot use {} as well: start another one for it",
          device_name(opened_device()), device_name(device));
  return opened_device();
}

namespace {

std::mutex choosing;
std::optional<Device> chosen;

}  // namespace

Device default_device() {
  const std::lock_guard lock(choosing);
  if (!chosen) {
    const char* const name = std::getenv("HEED_DEVICE");
    chosen = name == nullptr || *name == '\0' ? Device{} : open_device(name);
  }
  return *chosen;
}

void set_default_device(std::string_view name) {
  const Device device = open_device(name);
  const std::lock_guard lock(choosing);
  chosen = device;
}

Device opened_device() {
  const Accelerator* const accelerator = opened.load();
  return accelerator == nullptr ? Device{} : accelerator->device;
}

std::string device_description(Device device) {
  if (device.is_cpu() || opened == nullptr) return "the processor";
  const HeedCudaDevice& properties = accelerator().properties;
  return fmt::format("{}, {:.1f} GiB", properties.name,
                     static_cast<double>(properties.total) / (1 << 30));
}

DeviceMemoryUse device_memory() {
  if (opened == nullptr) return {};
  Accelerator& device = accelerator();
  const std::lock_guard lock(device.pool_mutex);
  return {.used = device.pool->used(),
          .mapped = device.pool->mapped(),
          .largest = device.pool->largest(),
          .total = device.properties.total};
}

std::byte* allocate_on_accelerator(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  Accelerator& device = accelerator();
  const std::lock_guard lock(device.pool_mutex);
  const std::size_t offset = device.pool->take(bytes);
  require(offset != DevicePool::none, ErrorCode::out_of_memory,
          "cannot allocate {:.1f} MiB on {}, where {:.1f} of {:.1f} MiB are in use: use a smaller "
          "model, batch or context",
          static_cast<double>(bytes) / (1 << 20), device_name(device.device),
          static_cast<double>(device.pool->used()) / (1 << 20),
          static_cast<double>(device.properties.total) / (1 << 20));
  return static_cast<std::byte*>(device.properties.begin) + offset;
}

void release_on_accelerator(std::byte* memory) noexcept {
  if (DeviceRecording* const recording = DeviceRecording::current()) return recording->keep(memory);
  Accelerator& device = accelerator();
  const std::lock_guard lock(device.pool_mutex);
  device.pool->give_back(
      static_cast<std::size_t>(memory - static_cast<std::byte*>(device.properties.begin)));
}

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (!is_on_accelerator(to) && !is_on_accelerator(from)) {
    std::memcpy(to, from, bytes);
    return;
  }
  const DeviceRecording* const recording = DeviceRecording::current();
  require(recording == nullptr || is_on_accelerator(from) || !recording->clears(to, bytes),
          ErrorCode::unsupported,
          "what is copied from the processor to memory that a recording clears would be lost");
  require_done(accelerator().copy(to, from, bytes), "a copy");
}

void clear_bytes(void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  if (!is_on_accelerator(memory)) {
    std::memset(memory, 0, bytes);
    return;
  }
  if (DeviceRecording* const recording = DeviceRecording::current()) {
    recording->will_clear(memory, bytes);
  }
  require_done(accelerator().clear(memory, bytes), "filling memory with zeros");
}

void synchronize_accelerator() {
  if (opened != nullptr) require_done(accelerator().synchronize(), "a kernel");
}

void* accelerator_function(const char* name) {
  return function_of<void*>(accelerator(), fmt::format("heed_cuda_{}", name).c_str());
}

}  // namespace heed
