// The memory of the machine and of this process: what is available, what was used, what is kept or
// returned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

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

// Returns blocks of at least `bytes` to the system as soon as they are freed, if the C
// library supports it: otherwise it learns to keep ever larger ones, up to 32 MiB, between others.
void return_large_blocks(std::int64_t bytes);

// Returns free memory that malloc keeps for later allocations to the system, if the C library
// supports it.
void return_free_memory();

// Directories of the control groups (cgroups) of `controller` ("cpu", "memory") that limit this
// process, each after the groups that contain it: of version 2, and of version 1. A directory may
// be listed twice or be missing. `root` is where sysfs and procfs are.
std::vector<std::filesystem::path> control_group_directories(
    std::string_view controller, const std::filesystem::path& root = "/");

// Sets memory aside that is given back when an allocation fails: destructors may allocate, and end
// the process where they cannot (nlohmann::json's do). For programs only: it sets the process's
// new-handler. To be called again once the failure was dealt with. Never throws.
void reserve_memory_for_unwinding() noexcept;

}  // namespace heed
