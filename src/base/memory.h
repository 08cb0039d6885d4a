// Available memory, peak memory of the process, and returning free memory to the system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace heed {

// Returns the bytes that can be allocated without swapping: MemAvailable, or what the limits of the
// process's control groups (either version) leave if that is less. Returns nothing if the system
// does not report them. `root` is where procfs and sysfs are.
std::optional<std::int64_t> available_memory(const std::filesystem::path& root = "/");

// Returns the peak resident memory of this process since its start or the last reset.
std::int64_t peak_resident_bytes();

// Resets the peak. If the system does not allow it, the peak remains that since the start of the
// process.
void reset_peak_resident_bytes();

// Limits the number of malloc arenas, which is otherwise up to eight per core, if the C library
// supports it. Applies to threads that start later.
void limit_malloc_arenas(int arenas);

// Returns blocks of at least so many bytes to the system as soon as they are freed, if the C
// library supports it: otherwise it learns to keep ever larger ones, up to 32 MiB, between others.
void return_large_blocks(std::int64_t bytes);

// Returns free memory that malloc keeps for later allocations to the system, if the C library
// supports it.
void return_free_memory();

}  // namespace heed
