// How the next token is sampled: options of every command that samples or shows it, from the table
// of heed/sampling.h.
#pragma once

#include "cli/arguments.h"
#include "heed/sampling.h"

namespace heed::cli {

// All but the seed.
void add_sampling_options(Command command, SamplingOptions& options);

void add_sampling_seed_option(Command command, SamplingOptions& options);

}  // namespace heed::cli
