#include "model/variants.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "model/comparison.h"

namespace heed {
namespace {

struct Base {
  static constexpr std::int64_t positions = 9;
  Transformer transformer = testing::random_transformer(testing::small_config());
  std::vector<std::int32_t> tokens = testing::random_tokens(positions, 61, 3);

  StackActivations activations(Keep keep = Keep::every_block) const {
    StackActivations activations(transformer.specification(), 1, positions, keep);
    transformer.forward({tokens.data(), {1, positions}}, {.sequences = {1, positions}},
                        activations);
    return activations;
  }
};

// A variant that differs in nothing ends in the logits of the sequence itself, whatever weights the
// products read: the tolerance is that of f32 sums in another order.
TEST(Variants, ThatDifferInNothingEndAsTheirBase) {
  for (const kernels::WeightFormat format :
       {kernels::WeightFormat::f32, kernels::WeightFormat::bf16, kernels::WeightFormat::int8}) {
    Base base;
    base.transformer.parameters().prepare(format);
    const StackActivations activations = base.activations();
    Tensor<float> expected(Shape{1, 61});
    base.transformer.project(
        activations.final_norm().slice(0, Base::positions - 1, Base::positions), expected);
    for (const std::int64_t layer : {0, 1, 2, 3}) {
      Variants variants(base.transformer, activations, {0, 3, 8});
      const View<const float> stream =
          layer < 3 ? activations.block(layer).residual_pre : activations.last_residual();
      for (std::int64_t variant = 0; variant < variants.count(); ++variant) {
        const auto rows = stream.slice(0, variants.first(variant), Base::positions).span();
        std::ranges::copy(rows, variants.stream(variant).data());
      }
      const Tensor<float> logits = variants.run(layer);
      for (std::int64_t variant = 0; variant < variants.count(); ++variant) {
        EXPECT_LT(testing::relative_error(logits.view()[variant].span(), expected.span()), 1e-5)
            << kernels::weight_format_name(format) << ", layer " << layer << ", variant "
            << variant;
      }
    }
  }
}

// Variants that enter at different layers run the blocks that follow together, and logits of some
// tokens are those of all: to the bit.
TEST(Variants, MayEnterAtDifferentLayers) {
  for (const kernels::WeightFormat format :
       {kernels::WeightFormat::f32, kernels::WeightFormat::int8}) {
    Base base;
    base.transformer.parameters().prepare(format);
    const StackActivations activations = base.activations();
    const auto enter = [&](Variants& variants, std::int64_t variant, std::int64_t layer,
                           float times) {
      const View<const float> stream =
          layer < 3 ? activations.block(layer).residual_pre : activations.last_residual();
      const auto rows = stream.slice(0, variants.first(variant), Base::positions).span();
      std::ranges::copy(rows, variants.stream(variant).data());
      for (float& value : variants.stream(variant).span()) value *= times;
    };
    const auto times_of = [](std::int64_t variant) {  // other than the base, and than each other
      return 1.5F + 0.1F * static_cast<float>(variant);
    };
    // Those that begin at one position attend together.
    const std::vector<std::int64_t> firsts{0, 0, 3, 3, 3, 8, 2}, entered{0, 0, 0, 1, 1, 1, 3};
    const auto count = std::ssize(firsts);
    Variants together(base.transformer, activations, firsts);
    std::int64_t active = 0;
    for (std::int64_t layer = 0; layer <= 3; ++layer) {
      for (; active < count && entered[static_cast<std::size_t>(active)] == layer; ++active) {
        enter(together, active, layer, times_of(active));
      }
      if (layer < 3) together.run_block(layer, active);
    }
    const Tensor<float> logits = together.logits();
    const Tensor<float> chosen = together.logits(std::vector<std::int32_t>{60, 0, 7});
    EXPECT_EQ(chosen.shape(), Shape({count, 3}));
    for (std::int64_t variant = 0; variant < count; ++variant) {
      const auto at = static_cast<std::size_t>(variant);
      Variants alone(base.transformer, activations, {firsts[at]});
      enter(alone, 0, entered[at], times_of(variant));
      const Tensor<float> expected = alone.run(entered[at]);
      EXPECT_TRUE(std::ranges::equal(logits.view()[variant].span(), expected.span()))
          << kernels::weight_format_name(format) << ", variant " << variant;
      EXPECT_EQ(chosen.view()(variant, 0), expected[60]);
      EXPECT_EQ(chosen.view()(variant, 1), expected[0]);
      EXPECT_EQ(chosen.view()(variant, 2), expected[7]);
    }
  }
}

TEST(Variants, NeedABaseThatKeepsEveryBlock) {
  const Base base;
  const StackActivations kept = base.activations();
  const StackActivations overwritten = base.activations(Keep::one_block);
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { Variants(base.transformer, overwritten, {0}); },
      "every block kept");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { Variants(base.transformer, kept, {9}); },
      "position 9 of a sequence of 9");
}

}  // namespace
}  // namespace heed
