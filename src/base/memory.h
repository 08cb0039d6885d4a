// How much memory a process may still take.
#pragma once

#include <cstdint>
#include <optional>

namespace heed {

// Bytes that can be allocated without swapping: what the system calls available, or what is left of
// the control group's limit where that is less. None where the system does not say.
std::optional<std::int64_t> available_memory();

}  // namespace heed
