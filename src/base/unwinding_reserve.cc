#include "base/unwinding_reserve.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace heed {
namespace {

// More than the containers of any document that fits take in nlohmann's list of what is left to
// destroy. It is not touched, so it is address space and no memory.
constexpr std::size_t reserve_bytes = 16 << 20;

std::atomic<void*> reserve{nullptr};

// The allocation fails; those that follow have the reserve.
[[noreturn]] void give_back_reserve() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

}  // namespace

void reserve_memory_for_unwinding() noexcept {
  if (reserve.load() == nullptr) std::free(reserve.exchange(std::malloc(reserve_bytes)));
  std::set_new_handler(give_back_reserve);
}

}  // namespace heed
