// What the emulation tells GCC's and Clang's sanitizers: which stack and fiber runs, and which
// memory nobody may access. Nothing without them.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define HEED_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEED_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(HEED_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#define HEED_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEED_THREAD_SANITIZER 1
#endif
#endif
#if defined(HEED_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace heed::emulation {

// Tells AddressSanitizer which stack runs; nothing without it.
class StackSwitch {
 public:
#if defined(HEED_ADDRESS_SANITIZER)
  static void leave(void** fake, const void* bottom, std::size_t size) {
    __sanitizer_start_switch_fiber(fake, bottom, size);
  }
  static void arrive(void* fake, const void** bottom, std::size_t* size) {
    __sanitizer_finish_switch_fiber(fake, bottom, size);
  }
#else
  static void leave(void**, const void*, std::size_t) {}
  static void arrive(void*, const void**, std::size_t*) {}
#endif
};

// Tells ThreadSanitizer which fiber runs; nothing without it.
#if defined(HEED_THREAD_SANITIZER)
class SanitizedFiber {
 public:
  SanitizedFiber() : fiber_(__tsan_create_fiber(0)) {}
  ~SanitizedFiber() { __tsan_destroy_fiber(fiber_); }
  SanitizedFiber(const SanitizedFiber&) = delete;
  SanitizedFiber& operator=(const SanitizedFiber&) = delete;
  void enter() { __tsan_switch_to_fiber(fiber_, 0); }
  static void* current() { return __tsan_get_current_fiber(); }
  static void leave(void* scheduler) { __tsan_switch_to_fiber(scheduler, 0); }

 private:
  void* fiber_;
};
#else
struct SanitizedFiber {
  static void enter() {}
  static void* current() { return nullptr; }
  static void leave(void*) {}
};
#endif

inline void poison([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t size) {
#if defined(HEED_ADDRESS_SANITIZER)
  __asan_poison_memory_region(address, size);
#endif
}
inline void unpoison([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t size) {
#if defined(HEED_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(address, size);
#endif
}

}  // namespace heed::emulation
