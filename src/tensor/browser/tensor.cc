// The module's own memory, which only grows. Its pages take none of the machine's before they are
// written to, so that reserved addresses cost what is committed of them; but free memory of the
// heap is not zero.
#include "tensor/tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "tensor/allocated_bytes.h"

namespace heed {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t page = 4096;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::byte* aligned_memory(std::size_t unit, std::size_t bytes) {
  void* memory = nullptr;
  require(bytes <= SIZE_MAX - 2 * unit && ::posix_memalign(&memory, unit, bytes) == 0,
          ErrorCode::out_of_memory,
          "cannot allocate {:.1f} MiB of memory: use a smaller model, batch or context",
          static_cast<double>(bytes) / (1 << 20));
  return static_cast<std::byte*>(memory);
}

// Which pages of reserved addresses are committed, by where the addresses begin.
std::mutex reserving;
std::map<std::byte*, std::vector<bool>> reserved;

template <class Visit>
void for_each_page(std::span<std::byte> pages, Visit&& visit) {
  if (pages.empty()) return;
  const std::lock_guard lock(reserving);
  auto found = reserved.upper_bound(pages.data());
  check(found != reserved.begin(), "pages of reserved addresses");
  auto& [begin, committed] = *--found;
  const auto first = static_cast<std::size_t>(pages.data() - begin) / page;
  const std::size_t count = rounded_up(pages.size(), page) / page;
  check(first + count <= committed.size(), "pages of reserved addresses");
  for (std::size_t i = first; i < first + count; ++i) visit(begin + i * page, committed[i]);
}

}  // namespace

void ReleaseMemory::operator()(std::byte* memory) const noexcept {
  if (mapped > 0) {
    const std::lock_guard lock(reserving);
    reserved.erase(memory);
  }
  std::free(memory);
}

std::size_t allocated_bytes(std::size_t bytes) { return rounded_up(bytes, alignment); }

Memory allocate_memory(std::size_t bytes) {
  require(bytes <= SIZE_MAX - alignment, ErrorCode::out_of_memory, "cannot allocate {} bytes",
          bytes);
  const std::size_t rounded = allocated_bytes(bytes);
  std::byte* const memory = aligned_memory(alignment, rounded);
  std::memset(memory, 0, rounded);
  return Memory(memory, ReleaseMemory{});
}

Memory allocate_memory(std::size_t bytes, Device device) {
  check(device.is_cpu(), "a browser has no accelerator");
  return allocate_memory(bytes);
}

Memory allocate_uncleared(std::size_t bytes, Device device) {
  return allocate_memory(bytes, device);
}

std::size_t page_bytes() { return page; }

Memory reserve_memory(std::size_t bytes) {
  require(bytes <= SIZE_MAX - page, ErrorCode::out_of_memory, "cannot reserve {} bytes", bytes);
  const std::size_t rounded = std::max(rounded_up(bytes, page), page);
  Memory memory(aligned_memory(page, rounded), ReleaseMemory{rounded});
  const std::lock_guard lock(reserving);
  reserved[memory.get()].resize(rounded / page);
  return memory;
}

void commit_memory(std::span<std::byte> pages) {
  for_each_page(pages, [](std::byte* begin, auto&& is_committed) {
    if (!is_committed) std::memset(begin, 0, page);
    is_committed = true;
  });
}

void clear_memory(std::span<std::byte> pages) {
  if (!pages.empty()) std::memset(pages.data(), 0, pages.size());
}

void release_memory(std::span<std::byte> pages) {
  for_each_page(pages, [](std::byte*, auto&& is_committed) { is_committed = false; });
}

}  // namespace heed
