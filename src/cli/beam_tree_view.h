// A beam search drawn as a tree: what went on, what ended, and what was given up.
#pragma once

#include <string>

#include "cli/terminal/terminal.h"
#include "engine/searched_beams.h"

namespace heed::cli {

// Lines of at most the terminal's width, each with a newline. Runs of tokens without a branch are
// one line; candidates that were dropped at once are counted, not drawn.
std::string draw_beam_tree(const LoadedModel& model, const std::string& source,
                           const SearchedBeams& searched, const Terminal& terminal);

}  // namespace heed::cli
