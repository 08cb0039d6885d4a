// Options that take numbers: what each refuses, with what was expected.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <limits>

namespace heed::cli {

// A whole number from `least` to `most`, both included; signs that would wrap around in an unsigned
// number are refused, too.
CLI::Validator between(std::uint64_t least, std::uint64_t most);
inline CLI::Validator at_least(std::uint64_t least) {
  return between(least, std::numeric_limits<std::int64_t>::max());
}

// What seeds a generator of random numbers: any whole number of 64 bits.
inline CLI::Validator any_seed() { return between(0, std::numeric_limits<std::uint64_t>::max()); }

// A number of seconds, fractions too.
CLI::Validator seconds_above_zero();
CLI::Validator seconds_from_zero();

}  // namespace heed::cli
