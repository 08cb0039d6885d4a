#include "base/unwinding_reserve.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace heed {
namespace {

// More than the containers of any document that fits take in nlohmann's list of what is left to
// destroy. It is not touched, so it is address space and no memory. Where there is not that much,
// less will do: documents are smaller, too.
constexpr std::size_t most_reserved = 16 << 20;
constexpr std::size_t least_reserved = 64 << 10;

std::atomic<void*> reserve{nullptr};

// The allocation fails; those that follow have the reserve.
[[noreturn]] void give_back_reserve() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

}  // namespace

void reserve_memory_for_unwinding() noexcept {
  for (std::size_t bytes = most_reserved; bytes >= least_reserved; bytes /= 2) {
    if (reserve.load() == nullptr) std::free(reserve.exchange(std::malloc(bytes)));
  }
  std::set_new_handler(give_back_reserve);
}

}  // namespace heed
