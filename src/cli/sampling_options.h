// How the next token is drawn: the same options, with the defaults of SamplingOptions, in every
// command that draws or shows it.
#pragma once

#include "cli/arguments.h"
#include "generate/sampler.h"

namespace heed::cli {

void add_sampling_options(Command command, SamplingOptions& options);

}  // namespace heed::cli
