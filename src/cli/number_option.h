// Options that take numbers: what each refuses, with what was expected.
#pragma once

#include <cstdint>

#include "cli/arguments.h"

namespace heed::cli {

// A whole number from `min` to `max`, both included; signs that would wrap around in an unsigned
// number are refused, too.
Check between(std::uint64_t min, std::uint64_t max);
Check at_least(std::uint64_t min);

// What seeds a generator of random numbers: any whole number of 64 bits.
Check any_seed();

// A number of seconds, fractions too.
Check seconds_above_zero();
Check seconds_from_zero();

}  // namespace heed::cli
