#include "tensor/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "tensor/allocated_bytes.h"

namespace heed {
namespace {

constexpr std::size_t alignment = 64;
// Blocks of at least half a huge page use huge pages: matrix products touch a new page with every
// row, and a TLB miss costs as much as tens of multiply-adds. What is left after whole ones has
// another if it is at least half of one, and small pages if not.
constexpr std::size_t huge_page = std::size_t{2} << 20;

// From this size on, blocks are mapped from the system, which zeroes them: zeroing again would
// touch every page twice, on one thread.
constexpr std::size_t min_mapped = std::size_t{32} << 20;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t bytes_of_pages(std::size_t bytes) {
  const std::size_t rest = bytes % huge_page;
  return rest >= huge_page / 2 ? rounded_up(bytes, huge_page) : rounded_up(bytes, page_bytes());
}

// Null if there is no memory. `bytes` need not be a multiple of the alignment.
std::byte* aligned_memory(std::size_t unit, std::size_t bytes) {
  void* memory = nullptr;
  return ::posix_memalign(&memory, unit, bytes) == 0 ? static_cast<std::byte*>(memory) : nullptr;
}

bool is_large(std::size_t bytes) { return bytes >= huge_page / 2; }

std::size_t unit_of(std::size_t bytes) { return is_large(bytes) ? huge_page : alignment; }

// Null if the mapping fails. `bytes` is a multiple of the page size.
std::byte* map_memory(std::size_t bytes) {
  void* const begin = ::mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  // Unmaps the parts before the first and after the last whole page.
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
  } else if (is_on_accelerator(memory)) {
    release_on_accelerator(memory);
  } else {
    std::free(memory);
  }
}

std::size_t allocated_bytes(std::size_t bytes) {
  return is_large(bytes) ? bytes_of_pages(bytes) : rounded_up(bytes, alignment);
}

Memory allocate_memory(std::size_t bytes) {
  const bool large = is_large(bytes), maps = bytes >= min_mapped;
  const std::size_t unit = unit_of(bytes);
  require(bytes <= SIZE_MAX - 2 * unit, ErrorCode::out_of_memory, "cannot allocate {} bytes",
          bytes);
  const std::size_t rounded = allocated_bytes(bytes);
  auto* const memory = maps ? map_memory(rounded) : aligned_memory(unit, rounded);
  require(memory != nullptr, ErrorCode::out_of_memory,
          "cannot allocate {:.1f} MiB of memory: use a smaller model, batch or context",
          static_cast<double>(bytes) / (1 << 20));
  if (large) ::madvise(memory, rounded, MADV_HUGEPAGE);
  if (!maps) std::memset(memory, 0, rounded);
  return Memory(memory, ReleaseMemory{maps ? rounded : 0});
}

Memory allocate_memory(std::size_t bytes, Device device) {
  Memory memory = allocate_uncleared(bytes, device);
  if (!device.is_cpu()) clear_bytes(memory.get(), bytes);
  return memory;
}

Memory allocate_uncleared(std::size_t bytes, Device device) {
  if (device.is_cpu()) return allocate_memory(bytes);
  check(device == opened_device(), "the accelerator that this process has opened");
  return {allocate_on_accelerator(bytes == 0 ? 1 : bytes), ReleaseMemory{}};
}

std::size_t page_bytes() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

Memory reserve_memory(std::size_t bytes) {
  const std::size_t rounded = std::max(rounded_up(bytes, page_bytes()), page_bytes());
  void* const begin =
      ::mmap(nullptr, rounded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(begin != MAP_FAILED, ErrorCode::out_of_memory,
          "cannot reserve addresses for {:.1f} MiB: use a smaller model",
          static_cast<double>(bytes) / (1 << 20));
  return Memory(static_cast<std::byte*>(begin), ReleaseMemory{rounded});
}

void commit_memory(std::span<std::byte> pages) {
  if (pages.empty()) return;
  require(::mprotect(pages.data(), pages.size(), PROT_READ | PROT_WRITE) == 0,
          ErrorCode::out_of_memory,
          "cannot get {:.1f} MiB of memory: use a smaller model, or more processes",
          static_cast<double>(pages.size()) / (1 << 20));
}

void clear_memory(std::span<std::byte> pages) {
  if (pages.empty()) return;
  check(::madvise(pages.data(), pages.size(), MADV_DONTNEED) == 0, "pages of a private mapping");
}

void release_memory(std::span<std::byte> pages) {
  if (pages.empty()) return;
  // A new mapping of nothing: unlike madvise(), it also counts no longer as data of this process.
  void* const fixed = ::mmap(pages.data(), pages.size(), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  check(fixed == pages.data(), "pages of reserved addresses are mapped");
}

}  // namespace heed
