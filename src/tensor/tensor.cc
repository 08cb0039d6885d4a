#include "tensor/tensor.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::size_t alignment = 64;
// Blocks from half a huge page on take whole ones: matrix products touch a new page with every row,
// and a miss of the translation buffer costs as much as tens of multiply-adds.
constexpr std::size_t huge_page = std::size_t{2} << 20;

// From here on blocks come from the system, zeroed: to zero them again would touch every page
// twice, and with one thread.
constexpr std::size_t least_mapped = std::size_t{32} << 20;

// Null when there is no room. `bytes` are whole huge pages.
std::byte* map_memory(std::size_t bytes) {
  void* const begin = ::mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  // What lies before the first whole page, and behind the last, is given back.
  auto* const from = static_cast<std::byte*>(begin);
  const std::size_t before =
      (huge_page - reinterpret_cast<std::uintptr_t>(from) % huge_page) % huge_page;
  if (before > 0) ::munmap(from, before);
  ::munmap(from + before + bytes, huge_page - before);
  return from + before;
}

}  // namespace

void ReleaseMemory::operator()(std::byte* memory) const noexcept {
  if (mapped > 0) {
    ::munmap(memory, mapped);
  } else {
    std::free(memory);
  }
}

Memory allocate_memory(std::size_t bytes) {
  const bool large = bytes >= huge_page / 2, maps = bytes >= least_mapped;
  const std::size_t unit = large ? huge_page : alignment;
  require(bytes <= SIZE_MAX - 2 * unit, ErrorCode::out_of_memory, "cannot allocate {} bytes",
          bytes);
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  auto* const memory =
      maps ? map_memory(rounded) : static_cast<std::byte*>(std::aligned_alloc(unit, rounded));
  require(memory != nullptr, ErrorCode::out_of_memory,
          "cannot allocate {:.1f} MiB of memory: use a smaller model, batch or context",
          static_cast<double>(bytes) / (1 << 20));
  if (large) ::madvise(memory, rounded, MADV_HUGEPAGE);
  if (!maps) std::memset(memory, 0, rounded);
  return Memory(memory, ReleaseMemory{maps ? rounded : 0});
}

}  // namespace heed
