// How much memory this process has held.
#pragma once

#include <cstdint>

namespace heed {

// The most memory that this process has held at once, since it began or since the last reset.
std::int64_t peak_resident_bytes();

// Counts from now on. Where the system does not allow it, the peak stays that of the whole life.
void reset_peak_resident_bytes();

}  // namespace heed
