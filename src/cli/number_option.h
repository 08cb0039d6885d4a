// Options that take numbers, which say what they refuse and what was expected, and lists, the same
// way in every command: "--points A,B" or "--points A --points B", never several words behind one
// option.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// `values_behind`, where given, is what separates an item from its value ('=' or ':'): commas in a
// value belong to it, as in "L1H0:7>3,7>4". Throws Error{invalid_argument} for an empty item.
Option add_list_option(Command command, const std::string& name, std::vector<std::string>& items,
                       const std::string& description, char values_behind = '\0');

// The same as one text with commas, as parse_indices takes it.
Option add_list_option(Command command, const std::string& name, std::string& list,
                       const std::string& description);

}  // namespace heed::cli
