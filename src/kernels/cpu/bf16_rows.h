// Products of a few rows with weights prepared in bf16, by AVX-512 BF16's dot products of pairs.
// x86-64 only.
#pragma once

#include "kernels/cpu/prepared_formats.h"

namespace heed::kernels {

// Rows up to which these functions are faster than the matrix product with the same instructions,
// whose results they have to the bit.
inline constexpr std::int64_t few_rows_of_pairs = 8;

// prepared (rows, padded inputs / 2) words = x (rows, inputs) rounded, in pairs.
std::int64_t paired_rows_size(std::int64_t rows, const PanelShape& shape);
void pair_rows_of_x(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared);

// sums (panels, rows, 32) += prepared rows · panelsᵀ.
void multiply_paired_rows(const float* prepared, std::int64_t rows, const PanelRun& run,
                          const PanelShape& shape, float* sums);

}  // namespace heed::kernels
