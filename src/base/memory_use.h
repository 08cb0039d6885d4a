// How much memory there is, and how much of it this process holds.
#pragma once

#include <cstdint>

namespace heed {

// Of the machine, in bytes.
std::int64_t physical_memory_bytes();

// The most memory that this process has held at once, since it began or since the last reset.
std::int64_t peak_resident_bytes();

// Counts from now on. Where the system does not allow it, the peak stays that of the whole life.
void reset_peak_resident_bytes();

}  // namespace heed
