// How much memory a process may still take, how much it has held, and how to hold less.
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

// Lets the threads of this process share so many pools of free memory, instead of keeping a pool
// for nearly every thread, where the C library can. For threads that are yet to begin.
void share_memory_pools(int pools);

// Gives memory that is free, but kept for later allocations, back to the system, where the C
// library can.
void return_free_memory();

}  // namespace heed
