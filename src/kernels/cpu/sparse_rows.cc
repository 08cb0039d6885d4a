// Sums of a few rows of a matrix: columns block by block, so that sums stay in registers while the
// rows go by.
#include "kernels/sparse_rows.h"
#include "kernels/backends.h"

#include "base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sparse_rows.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/row_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Vectors of a block: with as many sums, multiply-adds do not wait for each other.
inline constexpr int kSparseBlock = 8;

void AddSparse(const SparseRows& rows, float* out, std::size_t columns) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d), block = kSparseBlock * lanes;
  const float* const matrix = rows.matrix.data();
  const std::int64_t stride = rows.matrix.stride(0);
  const std::size_t count = rows.indices.size();
  std::size_t c = 0;
  for (; c + block <= columns; c += block) {
    Float sums[kSparseBlock];
    Unroll<kSparseBlock>([&](auto v)
                             HEED_INLINE_LAMBDA { sums[v] = hn::LoadU(d, out + c + v * lanes); });
    for (std::size_t e = 0; e < count; ++e) {
      const float* const row = matrix + rows.indices[e] * stride + c;
      const Float factor = hn::Set(d, rows.factors[e]);
      Unroll<kSparseBlock>([&](auto v) HEED_INLINE_LAMBDA {
        sums[v] = hn::MulAdd(factor, hn::LoadU(d, row + v * lanes), sums[v]);
      });
    }
    Unroll<kSparseBlock>([&](auto v)
                             HEED_INLINE_LAMBDA { hn::StoreU(sums[v], d, out + c + v * lanes); });
  }
  for (; c < columns; c += lanes) {
    const std::size_t rest = columns - c < lanes ? columns - c : lanes;
    Float sum = LoadPartial(d, out + c, rest);
    for (std::size_t e = 0; e < count; ++e) {
      const float* const row = matrix + rows.indices[e] * stride + c;
      sum = hn::MulAdd(hn::Set(d, rows.factors[e]), LoadPartial(d, row, rest), sum);
    }
    StorePartial(sum, d, out + c, rest);
  }
}

void MultiplySparse(const SparseRows& rows, const float* x, std::size_t columns, float* products) {
  const float* const matrix = rows.matrix.data();
  const std::int64_t stride = rows.matrix.stride(0);
  const std::size_t count = rows.indices.size();
  for (std::size_t e = 0; e < count; ++e) {
    const float* const row = matrix + rows.indices[e] * stride;
    products[e] +=
        SumRow(columns, [&](auto load) HEED_INLINE_LAMBDA { return hn::Mul(load(row), load(x)); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(AddSparse);
HWY_EXPORT(MultiplySparse);

namespace {

void require_sparse_rows(const SparseRows& rows, std::int64_t columns) {
  const View<const float>& matrix = rows.matrix;
  check(
      matrix.rank() == 2 && matrix.extent(1) == columns && (columns <= 1 || matrix.stride(1) == 1),
      "sparse rows are dense, and as wide as what they are added to");
}

}  // namespace

void cpu::add_sparse_rows(const SparseRows& rows, std::span<float> out) {
  require_sparse_rows(rows, static_cast<std::int64_t>(out.size()));
  check(rows.factors.size() == rows.indices.size(), "a factor for each sparse row");
  HWY_DYNAMIC_DISPATCH(AddSparse)(rows, out.data(), out.size());
}

void cpu::multiply_sparse_rows(const SparseRows& rows, std::span<const float> x,
                               std::span<float> products) {
  require_sparse_rows(rows, static_cast<std::int64_t>(x.size()));
  check(products.size() == rows.indices.size(), "a product for each sparse row");
  HWY_DYNAMIC_DISPATCH(MultiplySparse)(rows, x.data(), x.size(), products.data());
}

}  // namespace heed::kernels
#endif
