// Options that take lists, the same way in every command: "--points A,B" or "--points A --points
// B", never several words behind one option.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"

namespace heed::cli {

// `values_behind`, where given, is what separates an item from its value ('=' or ':'): commas in a
// value belong to it, as in "L1H0:7>3,7>4". Throws Error{invalid_argument} for an empty item.
Option add_list_option(Command command, const std::string& name, std::vector<std::string>& items,
                       const std::string& description, char values_behind = '\0');

// The same as one text with commas, as parse_indices takes it.
Option add_list_option(Command command, const std::string& name, std::string& list,
                       const std::string& description);

}  // namespace heed::cli
