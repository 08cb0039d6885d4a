// A few rows of x against panels of integers, for the instruction set in use; see PreparedFormat.
#pragma once

#include "kernels/cpu/prepared_formats.h"

namespace heed::kernels {

// prepared (rows, groups of RowGroup) = x (rows, inputs); weights are stored with `offset` added.
void quantise_rows(const float* x, std::int64_t rows, const PanelShape& shape, int offset,
                   float* prepared);

// sums (panels, rows, 32) += prepared rows of x · panelsᵀ.
void multiply_int8(const float* prepared, std::int64_t rows, const PanelRun& run,
                   const PanelShape& shape, float* sums);
void multiply_int4(const float* prepared, std::int64_t rows, const PanelRun& run,
                   const PanelShape& shape, float* sums);

// What these call where has_avx_vnni() or has_neon_dot_products(), with the same results to the
// bit.
void avx_vnni_multiply_int8(const float* prepared, std::int64_t rows, const PanelRun& run,
                            const PanelShape& shape, float* sums);
void avx_vnni_multiply_int4(const float* prepared, std::int64_t rows, const PanelRun& run,
                            const PanelShape& shape, float* sums);
void neon_multiply_int8(const float* prepared, std::int64_t rows, const PanelRun& run,
                        const PanelShape& shape, float* sums);
void neon_multiply_int4(const float* prepared, std::int64_t rows, const PanelRun& run,
                        const PanelShape& shape, float* sums);

}  // namespace heed::kernels
