// A few rows of x against panels of integers, for the instruction set in use; see PreparedFormat.
#pragma once

#include "kernels/cpu/prepared_formats.h"

namespace heed::kernels {

// prepared (rows, groups of RowGroup) = x (rows, inputs), the same for all formats.
void quantise_rows(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared);

// sums (panels, rows, 32) += prepared rows of x · panelsᵀ, of a format that holds integers.
void multiply_integers(WeightFormat format, const float* prepared, std::int64_t rows,
                       const PanelRun& run, const PanelShape& shape, float* sums);

// What this calls where has_avx_vnni() or has_neon_dot_products(), with the same results to the
// bit.
void avx_vnni_multiply_integers(WeightFormat format, const float* prepared, std::int64_t rows,
                                const PanelRun& run, const PanelShape& shape, float* sums);
void neon_multiply_integers(WeightFormat format, const float* prepared, std::int64_t rows,
                            const PanelRun& run, const PanelShape& shape, float* sums);

}  // namespace heed::kernels
