// How the next token is drawn: the same options, with the defaults of SamplingOptions, in every
// command that draws or shows it.
#pragma once

#include "generate/sampler.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_sampling_options(CLI::App& command, SamplingOptions& options);

}  // namespace heed::cli
