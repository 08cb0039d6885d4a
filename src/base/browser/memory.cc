// The module's own memory, which grows up to what 32 bits can address.
#include "base/memory.h"

#include <emscripten/heap.h>
#include <malloc.h>

#include <new>

namespace heed {

std::optional<std::int64_t> available_memory(const std::filesystem::path&) {
  return static_cast<std::int64_t>(emscripten_get_heap_max()) -
         static_cast<std::int64_t>(::mallinfo().uordblks);
}

std::int64_t peak_resident_bytes() { return static_cast<std::int64_t>(emscripten_get_heap_size()); }
void reset_peak_resident_bytes() {}
void limit_malloc_arenas(int) {}
void return_large_blocks(std::int64_t) {}
void return_free_memory() {}

std::vector<std::filesystem::path> control_group_directories(std::string_view,
                                                             const std::filesystem::path&) {
  return {};
}

void reserve_memory_for_unwinding() noexcept {}

}  // namespace heed
