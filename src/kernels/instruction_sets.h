// The vector instruction set of the kernels, selected at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::kernels {

// Names of the sets that this machine and build support, best first. x86-64: "AMX_BF16",
// "AVX512_BF16" (both with the best vector instructions), then Highway's "AVX3_DL", "AVX3" (its
// name for AVX-512), "AVX2", "SSE4", "SSSE3", ... without units for bf16; "AVX_VNNI" is AVX2 with
// dot products of bytes. AArch64: "NEON_BF16" (dot products of bf16 and of bytes), "NEON_DOT" (of
// bytes), "NEON". Where dot products of bf16 are slower than multiply-adds of f32, "AVX512_BF16" or
// "NEON_BF16" is the second.
std::vector<std::string> available_instruction_sets();

// The set in use.
std::string current_instruction_set();

// Selects a set by name, for tests and benchmarks; an empty name selects the best. Throws
// Error{invalid_argument} with the available names.
void use_instruction_set(std::string_view name);

// Whether the set in use multiplies bf16 numbers. Without, they are widened to f32 first.
bool has_bf16_products();

// Whether it multiplies bf16 numbers in tiles (AMX), several times as fast as f32.
bool has_tile_products();

}  // namespace heed::kernels
