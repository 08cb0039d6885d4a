#include "tensor/tensor.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::size_t alignment = 64;
// Blocks from half a huge page on take whole ones: matrix products touch a new page with every row,
// and a miss of the translation buffer costs as much as tens of multiply-adds.
constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

void ReleaseMemory::operator()(std::byte* memory) const noexcept { std::free(memory); }

Memory allocate_memory(std::size_t bytes) {
  const bool large = bytes >= huge_page / 2;
  const std::size_t unit = large ? huge_page : alignment;
  require(bytes <= SIZE_MAX - unit, ErrorCode::out_of_memory, "cannot allocate {} bytes", bytes);
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(unit, rounded));
  require(memory != nullptr, ErrorCode::out_of_memory,
          "cannot allocate {:.1f} MiB of memory: use a smaller model, batch or context",
          static_cast<double>(bytes) / (1 << 20));
  if (large) ::madvise(memory, rounded, MADV_HUGEPAGE);
  std::memset(memory, 0, rounded);
  return Memory(memory);
}

}  // namespace heed
