// Options that take whole numbers.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

namespace heed::cli {

// Refuses, with what was expected, text that is no whole number from `least` up: signs that would
// wrap around in an unsigned number among it.
CLI::Validator at_least(std::uint64_t least);

}  // namespace heed::cli
