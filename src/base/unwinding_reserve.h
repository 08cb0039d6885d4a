// Memory for what unwinding after std::bad_alloc allocates.
#pragma once

namespace heed {

// Sets memory aside that is given back when an allocation fails: destructors may allocate, and end
// the process where they cannot (nlohmann::json's do). For programs only: it sets the process's
// new-handler. To be called again once the failure was dealt with. Never throws.
void reserve_memory_for_unwinding() noexcept;

}  // namespace heed
