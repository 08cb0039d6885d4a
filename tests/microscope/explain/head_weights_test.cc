// Computations on weights, against plain loops over whole C x C matrices.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "microscope/explain/head_circuits.h"
#include "microscope/explain/logit_direction.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {
namespace {

using Matrix = std::vector<std::vector<double>>;  // (C, C)

// leftᵀ·right of rows (D, C).
Matrix product(View<const float> left, View<const float> right) {
  const std::int64_t channels = left.extent(1);
  Matrix result(channels, std::vector<double>(channels, 0.0));
  for (std::int64_t d = 0; d < left.extent(0); ++d) {
    for (std::int64_t i = 0; i < channels; ++i) {
      for (std::int64_t j = 0; j < channels; ++j) {
        result[i][j] += static_cast<double>(left(d, i)) * right(d, j);
      }
    }
  }
  return result;
}

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix result(a.size(), std::vector<double>(b.size(), 0.0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (std::size_t j = 0; j < b.size(); ++j) result[i][j] += a[i][k] * b[k][j];
    }
  }
  return result;
}

double norm(const Matrix& matrix) {
  double sum = 0;
  for (const auto& row : matrix) {
    for (const double value : row) sum += value * value;
  }
  return std::sqrt(sum);
}

Matrix reader(const LayerHeads& heads, std::int64_t head, CompositionKind kind) {
  switch (kind) {
    case CompositionKind::query: return product(heads.query(head), heads.key(head));
    case CompositionKind::key: return product(heads.key(head), heads.query(head));
    case CompositionKind::value: break;
  }
  return product(heads.value(head), heads.output(head));
}

// Scores are of order 0.1 to 1; products in f32 of 32 terms are good to about 1e-6.
TEST(Composition, IsWhatTheDefinitionSays) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const StackSpecification& config = transformer.specification();
  double worst = 0;
  for (const CompositionKind kind :
       {CompositionKind::query, CompositionKind::key, CompositionKind::value}) {
    const Tensor<float> scores = composition_scores(transformer, kind);
    ASSERT_EQ(scores.shape(), (Shape{3, 4, 3, 4}));
    for (std::int64_t l1 = 0; l1 < config.layers; ++l1) {
      for (std::int64_t l2 = 0; l2 < config.layers; ++l2) {
        const LayerHeads writers(transformer, l1);
        const LayerHeads readers(transformer, l2);
        for (std::int64_t h1 = 0; h1 < config.heads(); ++h1) {
          for (std::int64_t h2 = 0; h2 < config.heads(); ++h2) {
            const float actual = scores.view()(l1, h1, l2, h2);
            if (l1 >= l2) {
              EXPECT_EQ(actual, 0.0F);
              continue;
            }
            const Matrix written = product(writers.value(h1), writers.output(h1));
            const Matrix read = reader(readers, h2, kind);
            const double expected = norm(times(written, read)) / (norm(written) * norm(read));
            worst = std::max(worst, std::abs(actual - expected));
            EXPECT_NEAR(actual, expected, 1e-5);
          }
        }
      }
    }
  }
  RecordProperty("worst", fmt::format("{:.1e}", worst));
}

TEST(SingularVectors, ReconstructTheProduct) {
  StackSpecification wide = testing::small_config();
  wide.block.attention.head_size = 40;  // more than the 32 channels: the product has full rank
  double worst = 0;
  for (const StackSpecification& config : {testing::small_config(), wide}) {
    const Transformer transformer = testing::random_transformer(config);
    const LayerHeads heads(transformer, 1);
    for (const HeadCircuit circuit : {HeadCircuit::query_key, HeadCircuit::output_value}) {
      const SingularVectors vectors = singular_vectors(transformer, circuit, 1, 2);
      const Matrix expected = circuit == HeadCircuit::query_key
                                  ? product(heads.query(2), heads.key(2))
                                  : product(heads.value(2), heads.output(2));
      Matrix actual(expected.size(), std::vector<double>(expected.size(), 0.0));
      const auto rank = std::ssize(vectors.values);
      EXPECT_EQ(rank, std::min(config.channels, config.head_size()));
      for (std::int64_t k = 0; k < rank; ++k) {
        EXPECT_LE(vectors.values[k], vectors.values[std::max<std::int64_t>(k, 1) - 1]);
        double length = 0;
        for (std::int64_t i = 0; i < config.channels; ++i) {
          length += std::pow(vectors.left.view()(k, i), 2);
          for (std::int64_t j = 0; j < config.channels; ++j) {
            actual[i][j] +=
                vectors.values[k] * vectors.left.view()(k, i) * vectors.right.view()(k, j);
          }
        }
        EXPECT_NEAR(length, 1, 1e-6);
      }
      Matrix difference = expected;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        for (std::size_t j = 0; j < expected.size(); ++j) difference[i][j] -= actual[i][j];
      }
      worst = std::max(worst, norm(difference) / norm(expected));
      EXPECT_LT(norm(difference) / norm(expected), 1e-6);
    }
  }
  RecordProperty("worst", fmt::format("{:.1e}", worst));
  EXPECT_THROW(singular_vectors(testing::random_transformer(wide), HeadCircuit::query_key, 1, 4),
               Error);
}

// Logits of order 1, whose products are of other factors: rounding of f32, and no more.
TEST(RefactoredHeads, PredictTheSameWithOtherFactors) {
  StackSpecification wide = testing::small_config();
  wide.block.attention.head_size = 40;
  const std::vector<std::int32_t> tokens{5, 17, 4, 9, 30};
  double worst = 0;
  for (const StackSpecification& config : {testing::small_config(), wide}) {
    Transformer transformer = testing::random_transformer(config);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      float value = 0;
      for (float& bias :
           transformer.parameters().tensor({Role::query_key_value, Part::bias, layer}).span()) {
        bias = std::sin(value += 0.7F);
      }
    }
    const Tensor<float> before = RecordedPass(transformer, {.target = tokens}).logits();
    const LayerHeads was(transformer, 1);
    const Matrix carried = product(was.value(2), was.output(2));
    refactor_heads(transformer);
    const Tensor<float> after = RecordedPass(transformer, {.target = tokens}).logits();
    for (std::int64_t i = 0; i < before.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(before[i]) - after[i]));
    }
    const LayerHeads is(transformer, 1);
    const Matrix same = product(is.value(2), is.output(2));
    for (std::size_t i = 0; i < carried.size(); ++i) {
      for (std::size_t j = 0; j < carried.size(); ++j) EXPECT_NEAR(same[i][j], carried[i][j], 1e-5);
    }
    // Values read along directions of length 1 at right angles, as many as the product's rank.
    const std::int64_t rank = std::min(config.channels, config.head_size());
    for (std::int64_t d = 0; d < config.head_size(); ++d) {
      for (std::int64_t e = 0; e < config.head_size(); ++e) {
        double dot = 0;
        for (std::int64_t c = 0; c < config.channels; ++c) {
          dot += static_cast<double>(is.value(2)(d, c)) * is.value(2)(e, c);
        }
        EXPECT_NEAR(dot, d == e && d < rank ? 1 : 0, 1e-6);
      }
    }
  }
  EXPECT_LT(worst, 1e-5);
  StackSpecification shared = testing::small_config();
  shared.block.attention.key_value_heads = 2;
  Transformer refused = testing::random_transformer(shared);
  testing::expect_error(
      ErrorCode::unsupported, [&] { refactor_heads(refused); }, "shares keys between heads");
}

TEST(VocabularyProjection, FindsTheTokenThatADirectionIs) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  Tensor<float> direction(Shape{1, 32});
  for (std::int64_t c = 0; c < 32; ++c)
    direction[c] = transformer.parameters().token_embedding()(17, c);
  EXPECT_EQ(project_to_embeddings(transformer, direction, 3).front().most.front().token, 17);
  const VocabularyProjection written = project_to_logits(transformer, direction, 61).front();
  ASSERT_EQ(written.most.size(), 61U);
  EXPECT_EQ(written.most.front().token, written.least.back().token);
  for (std::size_t i = 1; i < 61; ++i) {
    EXPECT_GE(written.most[i - 1].score, written.most[i].score);
  }
}

}  // namespace
}  // namespace heed
