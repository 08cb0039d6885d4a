#include "tensor/tensor.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::size_t alignment = 64;
// Room behind every block, for matrix products that reach past the end of a small result. A guard,
// not a cure: heap corruption was seen with oneDNN 2.6's AVX-512 products and not with
// DNNL_MAX_CPU_ISA=AVX2, and is rarer with the room.
constexpr std::size_t margin = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

void ReleaseMemory::operator()(std::byte* memory) const noexcept { std::free(memory); }

Memory allocate_memory(std::size_t bytes) {
  const bool large = bytes >= 4 * huge_page;
  const std::size_t unit = large ? huge_page : alignment;
  require(bytes <= SIZE_MAX - unit - margin, ErrorCode::out_of_memory, "cannot allocate {} bytes",
          bytes);
  const std::size_t rounded = (bytes + margin + unit - 1) / unit * unit;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(unit, rounded));
  require(memory != nullptr, ErrorCode::out_of_memory,
          "cannot allocate {:.1f} MiB of memory: use a smaller model, batch or context",
          static_cast<double>(bytes) / (1 << 20));
  if (large) ::madvise(memory, rounded, MADV_HUGEPAGE);
  std::memset(memory, 0, rounded);
  return Memory(memory);
}

}  // namespace heed
