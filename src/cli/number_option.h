// Options that take numbers: what each refuses, with what was expected.
#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace heed::cli {

// A whole number from `least` to `most`, both included; signs that would wrap around in an unsigned
// number are refused, too.
CLI::Validator between(std::uint64_t least, std::uint64_t most);
CLI::Validator at_least(std::uint64_t least);

// What seeds a generator of random numbers: any whole number of 64 bits.
CLI::Validator any_seed();

// A number of seconds, fractions too.
CLI::Validator seconds_above_zero();
CLI::Validator seconds_from_zero();

}  // namespace heed::cli
