// Which vector instructions the kernels use: chosen from the machine at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::kernels {

// Names of the sets this machine and this build have, best first: "AMX_BF16", "AVX512_BF16" (both
// with the best vector instructions), then Highway's "AVX3_DL", "AVX3", "AVX2", "SSE4", "SSSE3",
// ... without units for bf16 ("AVX3" is its name for AVX-512).
std::vector<std::string> available_instruction_sets();

// The set in use.
std::string current_instruction_set();

// Uses `name` from now on, for tests and measurements; an empty name goes back to the best. Throws
// Error{invalid_argument} with the available names.
void use_instruction_set(std::string_view name);

}  // namespace heed::kernels
