// A patching grid as a picture in the terminal.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "microscope/patch/patch.h"

namespace heed::cli {

// Rows and columns with their names; a cell's colour is how much of the clean prompt's metric it
// brings back: none in the middle, all of it at one end, the opposite at the other.
void print_patch_map(const PatchResult& result, const std::vector<std::string>& row_names,
                     const std::vector<std::string>& column_names, const Terminal& terminal);

}  // namespace heed::cli
