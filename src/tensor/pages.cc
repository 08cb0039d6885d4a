#include "tensor/pages.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace heed {

void commit_pages_of(View<float> view) {
  const std::span<std::byte> bytes = std::as_writable_bytes(view.span());
  if (bytes.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t page = page_bytes();
  const std::uintptr_t first = begin / page * page;
  const std::uintptr_t end = (begin + bytes.size() + page - 1) / page * page;
  commit_memory({reinterpret_cast<std::byte*>(first), end - first});
}

}  // namespace heed
