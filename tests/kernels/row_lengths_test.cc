// Rows of lengths at which kernels divide them otherwise: among a warp, a block, and in pieces; and
// the same bits at every repeat.
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

double row_tolerance(std::int64_t columns) {
  return unit_roundoff * (8.0 + std::sqrt(static_cast<double>(columns)));
}

// Runs of a kernel give the same bits, whose parts are listed.
void expect_repeatable(const std::function<std::vector<Tensor<float>>()>& run) {
  const std::vector<Tensor<float>> first = run(), second = run();
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(std::memcmp(first[i].data(), second[i].data(), first[i].span().size_bytes()), 0) << i;
  }
}

TEST(RowLengths, NormsAreTheReferences) {
  for (const auto& [rows, columns] : {std::pair{3, 4},
                                      {3000, 12},
                                      {40, 200},
                                      {37, 768},
                                      {5, 1024},
                                      {5, 1028},
                                      {4, 3000},
                                      {3, 5000},
                                      {3, 9000},
                                      {2, 16388},
                                      {2, 20001}}) {
    SCOPED_TRACE(fmt::format("{} x {}", rows, columns));
    const Shape shape{rows, columns}, channels{columns};
    const Twin x = random_twin(shape, 1, 2.0, 0.5), d_out = random_twin(shape, 2);
    const Twin gain = random_twin(channels, 3, 0.3, 1.0), bias = random_twin(channels, 4);
    for (const bool centred : {true, false}) {
      Tensor<double> out(shape), mean(Shape{rows}), reciprocal(Shape{rows});
      Twin d_x = random_twin(shape, 5), d_gain = random_twin(channels, 6),
           d_bias = random_twin(channels, 7);
      if (centred) {
        const NormParameters<double> parameters{gain.exact, bias.exact};
        reference::layer_norm_forward<double>(x.exact, parameters, out, {mean, reciprocal});
        reference::layer_norm_backward<double>(x.exact, parameters, {mean, reciprocal}, d_out.exact,
                                               d_x.exact, {d_gain.exact, d_bias.exact});
      } else {
        const NormParameters<double> parameters{.gain = gain.exact, .bias = {}};
        reference::rms_norm_forward<double>(x.exact, parameters, out, reciprocal);
        reference::rms_norm_backward<double>(x.exact, parameters, reciprocal, d_out.exact,
                                             d_x.exact, {.gain = d_gain.exact, .bias = {}});
      }
      const auto run = [&, centred = centred, rows = rows, columns = columns] {
        Tensor<float> fast(shape), fast_mean(Shape{rows}), fast_reciprocal(Shape{rows});
        Twin gradient = random_twin(shape, 5), of_gain = random_twin(channels, 6),
             of_bias = random_twin(channels, 7);
        if (centred) {
          const NormParameters<float> parameters{gain.single, bias.single};
          layer_norm_forward(x.single, parameters, fast, {fast_mean, fast_reciprocal});
          layer_norm_backward(x.single, parameters, {fast_mean, fast_reciprocal}, d_out.single,
                              gradient.single, {of_gain.single, of_bias.single});
        } else {
          const NormParameters<float> parameters{.gain = gain.single, .bias = {}};
          rms_norm_forward(x.single, parameters, fast, fast_reciprocal);
          rms_norm_backward(x.single, parameters, fast_reciprocal, d_out.single, gradient.single,
                            {.gain = of_gain.single, .bias = {}});
        }
        const double tolerance = row_tolerance(columns), of_rows = row_tolerance(rows);
        EXPECT_LE(relative_error(fast, out), tolerance);
        EXPECT_LE(relative_error(fast_reciprocal, reciprocal), tolerance);
        EXPECT_LE(relative_error(gradient.single, d_x.exact), 2.0 * tolerance);
        EXPECT_LE(relative_error(of_gain.single, d_gain.exact), tolerance + of_rows);
        EXPECT_LE(relative_error(of_bias.single, d_bias.exact), of_rows);
        std::vector<Tensor<float>> results;
        results.push_back(std::move(fast));
        results.push_back(std::move(gradient.single));
        results.push_back(std::move(of_gain.single));
        results.push_back(std::move(of_bias.single));
        return results;
      };
      on_every_instruction_set([&] { expect_repeatable(run); });
    }
  }
}

TEST(RowLengths, CrossEntropyIsTheReference) {
  for (const auto& [rows, words] :
       {std::pair{9, 5}, {5, 1023}, {5, 1024}, {4, 1025}, {3, 4096}, {3, 8191}, {2, 50257}}) {
    SCOPED_TRACE(fmt::format("{} x {}", rows, words));
    Twin logits = random_twin(Shape{rows, words}, 1, 4.0);
    const Tensor<float> given = random_twin(Shape{rows, words}, 1, 4.0).single;
    // A word that cannot be, before the first other one of its row and among them.
    for (const std::int64_t i : {std::int64_t{0}, logits.single.size() - 2}) {
      logits.exact[i] = -std::numeric_limits<double>::infinity();
    }
    Tensor<std::int32_t> targets(Shape{rows});
    for (std::int64_t n = 0; n < rows; ++n) {
      targets[n] = static_cast<std::int32_t>(n == 1 ? ignored_target : (2 * words - 1 - n) % words);
    }
    Tensor<double> losses(Shape{rows});
    reference::cross_entropy_forward_backward<double>(logits.exact, targets, 0.5, losses);
    on_every_instruction_set([&, rows = rows] {
      Twin fast(given.shape());
      std::ranges::copy(given.span(), fast.single.data());
      for (const std::int64_t i : {std::int64_t{0}, given.size() - 2}) {
        fast.single[i] = -std::numeric_limits<float>::infinity();
      }
      Tensor<float> fast_losses(Shape{rows});
      cross_entropy_forward_backward(fast.single, targets, 0.5F, fast_losses);
      // as in CrossEntropy.MatchesTheReference
      const double tolerance = unit_roundoff * (24.0 + 8.0);
      for (std::int64_t n = 0; n < rows; ++n) EXPECT_NEAR(fast_losses[n], losses[n], tolerance);
      for (std::int64_t i = 0; i < given.size(); ++i) {
        ASSERT_NEAR(fast.single[i], logits.exact[i], 0.5 * tolerance) << i;
      }
    });
  }
}

}  // namespace
}  // namespace heed::kernels
