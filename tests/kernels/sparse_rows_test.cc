// Sums of a few rows of a matrix against plain ones, on every instruction set.
#include "kernels/sparse_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/reference/sparse_rows.h"
#include "kernels/support.h"
#include "tensor/tensor.h"

namespace heed::kernels {
namespace {

struct SparseCase {
  std::int64_t rows, columns, stride;
  std::size_t entries;
};

// Widths of no vector, of parts of one, of several blocks and what is left of them.
const SparseCase sparse_cases[] = {{1, 1, 1, 1},       {3, 7, 7, 5},       {5, 16, 20, 0},
                                   {9, 33, 40, 17},    {40, 128, 128, 64}, {40, 192, 600, 3},
                                   {100, 768, 768, 40}};

TEST(SparseRows, EqualPlainOnes) {
  for (const SparseCase& sizes : sparse_cases) {
    SCOPED_TRACE(::testing::Message() << sizes.columns << " columns, " << sizes.entries);
    RandomStream random(3, 1);
    Tensor<float> memory(Shape{sizes.rows, sizes.stride});
    for (float& value : memory.span()) value = static_cast<float>(random.normal());
    const View<const float> matrix(memory.data(), {sizes.rows, sizes.columns}, {sizes.stride, 1});
    std::vector<std::int32_t> indices(sizes.entries);
    std::vector<float> factors(sizes.entries), start(sizes.entries);
    for (std::size_t e = 0; e < sizes.entries; ++e) {
      indices[e] = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(sizes.rows)));
      factors[e] = static_cast<float>(random.normal());
      start[e] = static_cast<float>(random.normal());
    }
    std::vector<float> x(static_cast<std::size_t>(sizes.columns));
    for (float& value : x) value = static_cast<float>(random.normal());

    Tensor<double> exact(Shape{sizes.rows, sizes.columns});
    for (std::int64_t r = 0; r < sizes.rows; ++r) {
      for (std::int64_t c = 0; c < sizes.columns; ++c) exact.view()(r, c) = matrix(r, c);
    }
    const std::vector<double> x_exact(x.begin(), x.end());
    const std::vector<double> factors_exact(factors.begin(), factors.end());
    std::vector<double> sums = x_exact, products(start.begin(), start.end());
    reference::add_sparse_rows<double>(exact, indices, factors_exact, sums);
    reference::multiply_sparse_rows<double>(exact, indices, x_exact, products);

    on_every_instruction_set([&] {
      std::vector<float> out = x, found = start;
      add_sparse_rows({matrix, indices, factors}, out);
      multiply_sparse_rows({matrix, indices}, x, found);
      // Each term of at most a few is rounded, and the sum of n terms n times, to 6e-8.
      const double sum_bound = 6e-8 * 4 * (static_cast<double>(sizes.entries) + 2);
      for (std::size_t c = 0; c < out.size(); ++c) {
        EXPECT_NEAR(out[c], sums[c], sum_bound * (1 + std::abs(sums[c])));
      }
      const double product_bound = 6e-8 * 4 * (static_cast<double>(sizes.columns) + 2);
      for (std::size_t e = 0; e < found.size(); ++e) {
        EXPECT_NEAR(found[e], products[e], product_bound * (1 + std::abs(products[e])));
      }
    });
  }
}

}  // namespace
}  // namespace heed::kernels
