// Products with panels of integers by AArch64's dot products of bytes (SDOT).
#include "base/error.h"
#include "kernels/cpu/neon_instructions.h"
#include "kernels/cpu/quantised_products.h"

#if HEED_NEON_EXTENSIONS

#define HEED_NEON_DOT_PRODUCTS
#include "kernels/cpu/quantised_products-inl.h"

namespace heed::kernels {

void neon_multiply_integers(WeightFormat format, const float* prepared, std::int64_t rows,
                            const PanelRun& run, const PanelShape& shape, float* sums) {
  HWY_NAMESPACE::MultiplyIntegers(format, prepared, rows, run, shape, sums);
}

}  // namespace heed::kernels

#else

namespace heed::kernels {

void neon_multiply_integers(WeightFormat, const float*, std::int64_t, const PanelRun&,
                            const PanelShape&, float*) {
  check(false, "dot products of bytes are called where there are some");
}

}  // namespace heed::kernels

#endif
