// Memory of WebAssembly: malloc's, without pages of different sizes and without reserved addresses.
#include "tensor/tensor.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "tensor/allocated_bytes.h"

namespace heed {
namespace {

constexpr std::size_t alignment = 64;

}  // namespace

void ReleaseMemory::operator()(std::byte* memory) const noexcept { std::free(memory); }

std::size_t allocated_bytes(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

Memory allocate_memory(std::size_t bytes) {
  void* memory = nullptr;
  const bool is_possible = bytes <= PTRDIFF_MAX - alignment;
  const std::size_t rounded = is_possible ? allocated_bytes(bytes) : 0;
  require(is_possible && ::posix_memalign(&memory, alignment, rounded) == 0,
          ErrorCode::out_of_memory,
          "cannot allocate {:.1f} MiB of memory: use a smaller model, batch or context",
          static_cast<double>(bytes) / (1 << 20));
  std::memset(memory, 0, rounded);
  return Memory(static_cast<std::byte*>(memory), ReleaseMemory{0});
}

std::size_t page_bytes() { return std::size_t{64} << 10; }

// All of it at once: only several processes reserve more than they use.
Memory reserve_memory(std::size_t bytes) { return allocate_memory(bytes); }
void commit_memory(std::span<std::byte>) {}
void clear_memory(std::span<std::byte> pages) { std::memset(pages.data(), 0, pages.size()); }
void release_memory(std::span<std::byte>) {}

}  // namespace heed
