// The options by which a next token is drawn, the same for every command that draws or shows it.
#pragma once

#include <CLI/CLI.hpp>

#include "generate/sampler.h"

namespace heed::cli {

void add_sampling_options(CLI::App& command, SamplingOptions& options);

}  // namespace heed::cli
