// How much memory a process may still take, and how much it has held.
#pragma once

#include <cstdint>
#include <optional>

namespace heed {

// Bytes that can be allocated without swapping: what the system calls available, or what is left of
// the control group's limit where that is less. None where the system does not say.
std::optional<std::int64_t> available_memory();

// The most memory that this process has held at once, since it began or since the last reset.
std::int64_t peak_resident_bytes();

// Counts from now on. Where the system does not allow it, the peak stays that of the whole life.
void reset_peak_resident_bytes();

}  // namespace heed
