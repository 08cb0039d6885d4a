// Another program at the same work, for `heed bench --against`.
#pragma once

#include <string>

namespace heed::cli {

// Runs a command in the shell and returns the last number that it prints: its tokens a second. Its
// standard error is not touched. Throws Error{invalid_argument} when the command fails or its last
// number is not a rate, and Error{interrupted} when it is ended by Ctrl-C.
double tokens_per_second_of(const std::string& command);

}  // namespace heed::cli
