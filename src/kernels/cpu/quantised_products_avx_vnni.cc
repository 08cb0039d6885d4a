// Products with panels of integers by the dot products of bytes that machines with AVX2 may have
// beside it (AVX-VNNI), and that belong to none of Highway's targets.
#include "base/error.h"
#include "kernels/cpu/quantised_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantised_products_avx_vnni.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#define HEED_AVX_VNNI_PRODUCTS
#include "kernels/cpu/quantised_products-inl.h"

#if HWY_TARGET == HWY_AVX2
namespace heed::kernels {

void avx_vnni_multiply_integers(WeightFormat format, const float* prepared, std::int64_t rows,
                                const PanelRun& run, const PanelShape& shape, float* sums) {
  HWY_NAMESPACE::MultiplyIntegers(format, prepared, rows, run, shape, sums);
}

}  // namespace heed::kernels
#endif

#if HWY_ONCE && !(HWY_TARGETS & HWY_AVX2)
namespace heed::kernels {

void avx_vnni_multiply_integers(WeightFormat, const float*, std::int64_t, const PanelRun&,
                                const PanelShape&, float*) {
  check(false, "AVX-VNNI is called where it is built");
}

}  // namespace heed::kernels
#endif
