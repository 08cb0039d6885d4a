#include "model/transformer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "base/expect_error.h"
#include "base/random.h"
#include "model/comparison.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::relative_error;

struct Shape2 {
  NormPlacement placement;
  PositionKind positions;
};

Architecture toy(const Shape2& shape) {
  StackSpecification decoder = make_gpt_config(2, 4, 32, 24, 50);
  decoder.initial_deviation = 0.25F;  // gradients well above rounding
  decoder.block.norm.placement = shape.placement;
  decoder.block.attention.positions = shape.positions;
  decoder.block.attention.relative = {.buckets = 8, .max_distance = 16};
  decoder.block.feed_forward.activation = Activation::gelu_erf;  // smooth: kinks have no gradient
  decoder.embedding_scale = std::sqrt(32.0F);
  decoder.final_norm = shape.placement == NormPlacement::pre;
  StackSpecification encoder = decoder;
  encoder.role = StackRole::encoder;
  encoder.has_unembedding = false;
  encoder.block.attention.mask.kind = MaskKind::full;
  encoder.block.attention.relative.both_directions = true;
  decoder.block.cross_attention = decoder.block.attention;
  decoder.block.cross_attention->positions = PositionKind::none;
  decoder.block.cross_attention->mask.kind = MaskKind::full;
  return {.stacks = {encoder, decoder}};
}

std::vector<Shape2> shapes() {
  return {{NormPlacement::post, PositionKind::sinusoidal},
          {NormPlacement::pre, PositionKind::sinusoidal},
          {NormPlacement::pre, PositionKind::learned},
          {NormPlacement::pre, PositionKind::relative},
          {NormPlacement::post, PositionKind::learned}};
}

struct Pairs {
  std::vector<std::int32_t> source{3, 9, 27, 41, 5, 12, 12, 8, 30, 2};
  std::vector<std::int64_t> source_starts{0, 4, 10};
  std::vector<std::int32_t> target{1, 7, 19, 33, 1, 44, 6};
  std::vector<std::int64_t> target_starts{0, 4, 7};
  std::vector<std::int32_t> next{7, 19, 33, 2, 44, 6, kernels::ignored_target};

  PairBatch batch() const {
    return {.source = {source, source_starts}, .target = {target, target_starts}, .next = next};
  }
};

Transformer initialised(const Architecture& architecture) {
  Transformer model(architecture);
  model.parameters().initialize(7);
  return model;
}

TEST(EncoderDecoder, GradientsMatchFiniteDifferences) {
  for (const Shape2& shape : shapes()) {
    Transformer model = initialised(toy(shape));
    const Pairs pairs;
    PairBuffers buffers(model.architecture(), Keep::every_block);
    Gradients gradients(model.architecture());
    model.loss_and_gradients(pairs.batch(), {}, buffers, gradients);
    RandomStream signs(3, 0);
    for (const Parameter& parameter : model.parameters().list()) {
      const std::span<float> values = model.parameters().tensor(parameter.id).span();
      const std::span<const float> gradient = gradients.tensor(parameter.id).span();
      const std::vector<float> before(values.begin(), values.end());
      // Of the loss along a direction of length one.
      const auto slope_along = [&](const std::vector<double>& direction, double step) {
        const auto loss_at = [&](double distance) {
          for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<float>(before[i] + distance * direction[i]);
          }
          return model.loss(pairs.batch(), buffers).sum;
        };
        const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
        std::ranges::copy(before, values.begin());
        return slope;
      };
      // Along the gradient it is the gradient's norm.
      double squares = 0;
      for (const float g : gradient) squares += static_cast<double>(g) * g;
      const double norm = std::sqrt(squares);
      ASSERT_GT(norm, 0.1) << parameter_name(parameter.id);
      std::vector<double> direction(gradient.begin(), gradient.end());
      for (double& d : direction) d /= norm;
      EXPECT_NEAR(slope_along(direction, 5e-3) / norm, 1.0, 1e-2)
          << parameter_name(parameter.id) << " norm " << norm;

      // Where the gradient is zero, of keys' biases and of rows that nothing reads, the loss stays:
      // a loss of some 30, rounded at 4e-6, over a distance of 0.04. The smallest norm here is 0.3.
      double flat = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) {
        const bool is_flat = std::abs(gradient[i]) < 1e-5F;
        direction[i] = !is_flat ? 0 : signs.below(2) == 0 ? 1 : -1;
        flat += is_flat;
      }
      if (flat == 0) continue;
      for (double& d : direction) d /= std::sqrt(flat);
      EXPECT_NEAR(slope_along(direction, 2e-2), 0, 1e-3)
          << parameter_name(parameter.id) << ", where " << flat << " gradients are zero";
    }
  }
}

// T5's shape: RMS norms, no biases, scores that are not scaled, a gated feed-forward layer.
Architecture t5_toy() {
  Architecture architecture = toy({NormPlacement::pre, PositionKind::relative});
  for (StackSpecification& stack : architecture.stacks) {
    stack.block.norm.kind = NormKind::rms;
    set_biases(stack, Biases::none);
    stack.block.attention.scale = 1;
    stack.block.feed_forward.gated = true;
    stack.embedding_scale = 1;
    stack.initial_deviation = 0.15F;
  }
  StackSpecification& decoder = architecture.stacks.back();
  decoder.logit_scale = 1.0F / std::sqrt(32.0F);
  AttentionSpecification& cross = *decoder.block.cross_attention;
  cross.query_bias = cross.output_bias = false;
  cross.scale = 1;
  return architecture;
}

// Two pairs, the first long enough for every bucket of distances.
struct LongPairs {
  std::vector<std::int32_t> source, target, next;
  std::vector<std::int64_t> source_starts{0, 24, 30};
  std::vector<std::int64_t> target_starts{0, 20, 23};

  LongPairs() {
    for (std::int32_t i = 0; i < 30; ++i) source.push_back(i * 17 % 50);
    for (std::int32_t i = 0; i < 23; ++i) target.push_back(i * 29 % 50);
    for (std::int32_t i = 0; i < 23; ++i) next.push_back(i * 11 % 50);
  }
  PairBatch batch() const {
    return {.source = {source, source_starts}, .target = {target, target_starts}, .next = next};
  }
};

// The table of distances, number by number, of both stacks.
TEST(EncoderDecoder, GradientsOfEveryDistancesBiasMatchFiniteDifferences) {
  Transformer model = initialised(t5_toy());
  const LongPairs pairs;
  PairBuffers buffers(model.architecture(), Keep::every_block);
  Gradients gradients(model.architecture());
  model.loss_and_gradients(pairs.batch(), {}, buffers, gradients);
  for (const StackSite site : {StackSite::encoder, StackSite::decoder}) {
    const ParameterId id{.role = Role::position_bias, .site = site};
    const View<float> table = model.parameters().tensor(id);
    const View<const float> gradient = gradients.tensor(id);
    const RelativePositions& relative = model.architecture().of(site).block.attention.relative;
    const std::int64_t longest = site == StackSite::encoder ? 24 : 20;
    std::set<std::int64_t> met;
    for (std::int64_t distance = 1 - longest; distance < longest; ++distance) {
      if (site == StackSite::encoder || distance <= 0) met.insert(relative.bucket(distance));
    }
    ASSERT_GE(met.size(), 7U);
    float largest = 0;
    for (const float g : gradient.span()) largest = std::max(largest, std::abs(g));
    ASSERT_GT(largest, 0.05F);
    for (std::int64_t bucket = 0; bucket < table.extent(0); ++bucket) {
      for (std::int64_t head = 0; head < table.extent(1); ++head) {
        if (!met.contains(bucket)) {
          EXPECT_EQ(gradient(bucket, head), 0);
          continue;
        }
        const float before = table(bucket, head);
        const auto loss_at = [&](float value) {
          table(bucket, head) = value;
          return model.loss(pairs.batch(), buffers).sum;
        };
        const float step = 2e-2F;
        const double slope = (loss_at(before + step) - loss_at(before - step)) / (2 * step);
        table(bucket, head) = before;
        EXPECT_NEAR(slope, gradient(bucket, head), 1e-2 * largest)
            << parameter_name(id) << ' ' << bucket << ' ' << head;
        EXPECT_NE(gradient(bucket, head), 0);
      }
    }
  }
}

TEST(EncoderDecoder, SequencesOfABatchAreWhatTheyAreAlone) {
  for (const Shape2& shape : shapes()) {
    const Transformer model = initialised(toy(shape));
    const Pairs pairs;
    PairBuffers buffers(model.architecture(), Keep::one_block);
    model.loss(pairs.batch(), buffers);
    const View<float> rows = buffers.decoder().final_norm();
    const std::vector<float> together(rows.data() + 4 * 32, rows.data() + 7 * 32);

    const std::vector<std::int64_t> source_starts{0, 6}, target_starts{0, 3};
    const PairBatch second{.source = {std::span(pairs.source).subspan(4), source_starts},
                           .target = {std::span(pairs.target).subspan(4), target_starts},
                           .next = std::span(pairs.next).subspan(4)};
    model.loss(second, buffers);
    const View<float> alone = buffers.decoder().final_norm();
    EXPECT_EQ(together, std::vector<float>(alone.data(), alone.data() + 3 * 32));
  }
}

TEST(EncoderDecoder, RectangularPassesAreRaggedOnes) {
  for (const Shape2& shape : shapes()) {
    const Transformer model = initialised(toy(shape));
    const Pairs pairs;
    PairBuffers buffers(model.architecture(), Keep::one_block);
    model.loss(pairs.batch(), buffers);
    StackActivations encoder(model.architecture().encoder(), 1, 6, Keep::every_block);
    StackActivations decoder(model.architecture().decoder(), 1, 3, Keep::every_block, 6);
    model.forward({{pairs.source.data() + 4, Shape{1, 6}},
                   {.sequences = {1, 6}, .site = StackSite::encoder},
                   encoder},
                  {{pairs.target.data() + 4, Shape{1, 3}},
                   {.sequences = {1, 3}, .site = StackSite::decoder},
                   decoder});
    const View<float> rows = buffers.decoder().final_norm();
    EXPECT_LE(relative_error(decoder.final_norm().span(), rows.slice(0, 4, 7).span()), 1e-5);
  }
}

// Steps of one token with caches of every type, several hypotheses of several sources at once.
TEST(EncoderDecoder, CachedDecodingIsTheFullPass) {
  for (const Shape2& shape : shapes()) {
    const Transformer model = initialised(toy(shape));
    const Pairs pairs;
    for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::int8}) {
      const EncodedSources encoded = model.encode({pairs.source, pairs.source_starts}, type);
      const std::vector<std::int64_t> sources{0, 0, 1, 1, 1};
      KeyValueCache cache = model.make_cache(5, 8, type);
      StackActivations activations(model.architecture().decoder(), 5, 1, Keep::one_block);
      Tensor<float> logits(Shape{5, 50});
      for (std::int64_t t = 0; t < 3; ++t) {
        const auto at = static_cast<std::size_t>(t);
        const std::int32_t first = pairs.target[at], second = pairs.target[4 + at];
        const std::vector<std::int32_t> tokens{first, first, second, second, second};
        model.decode({.tokens = tokens, .sources = sources, .encoded = encoded, .cache = cache},
                     activations, logits);
      }
      PairBuffers buffers(model.architecture(), Keep::one_block);
      model.loss(pairs.batch(), buffers);
      Tensor<float> expected(Shape{7, 50});
      unembed(model.stack(StackSite::decoder), buffers.decoder().unembedding_in(), expected,
              ragged_positions);
      const double tolerance = type == CacheType::f32 ? 1e-5 : 3e-2;
      for (std::int64_t r = 0; r < 5; ++r) {
        const auto row = logits.view()[r].span();
        EXPECT_LE(relative_error(row, expected.view()[r < 2 ? 2 : 6].span()), tolerance) << r;
        EXPECT_EQ(std::vector(row.begin(), row.end()),
                  std::vector(logits.view()[r < 2 ? 0 : 2].span().begin(),
                              logits.view()[r < 2 ? 0 : 2].span().end()));
      }
    }
  }
}

TEST(EncoderDecoder, ReorderedHypothesesGoOnAsTheirParents) {
  const Transformer model = initialised(toy(shapes()[1]));
  const Pairs pairs;
  for (const CacheType type : {CacheType::f32, CacheType::int8}) {
    const EncodedSources encoded = model.encode({pairs.source, pairs.source_starts}, type);
    StackActivations activations(model.architecture().decoder(), 3, 1, Keep::one_block);
    const auto decode = [&](KeyValueCache& cache, const std::vector<std::int32_t>& tokens,
                            const std::vector<std::int64_t>& sources) {
      Tensor<float> logits(Shape{std::ssize(tokens), 50});
      model.decode({.tokens = tokens, .sources = sources, .encoded = encoded, .cache = cache},
                   activations, logits);
      return logits;
    };
    KeyValueCache cache = model.make_cache(3, 8, type), other = model.make_cache(3, 8, type);
    decode(cache, {1, 4, 9}, {0, 0, 1});
    cache.select(std::vector<std::int64_t>{1, 1, 2});
    decode(other, {4, 4, 9}, {0, 0, 1});
    EXPECT_TRUE(testing::same_bits(decode(cache, {6, 7, 8}, {0, 0, 1}),
                                   decode(other, {6, 7, 8}, {0, 0, 1})));
    const std::vector<std::int64_t> last{2};
    cache.select(last);
    other.select(last);
    EXPECT_EQ(cache.batch(), 1);
    EXPECT_TRUE(testing::same_bits(decode(cache, {3}, {1}), decode(other, {3}, {1})));
  }
}

// An encoder sees both ways; a decoder never sees what comes later.
TEST(EncoderDecoder, TheMaskIsWhatMakesAnEncoder) {
  const Transformer model = initialised(toy(shapes()[0]));
  Pairs pairs;
  PairBuffers buffers(model.architecture(), Keep::one_block);
  const auto rows = [](View<float> view, std::int64_t begin, std::int64_t end) {
    const auto span = view.slice(0, begin, end).span();
    return std::vector<float>(span.begin(), span.end());
  };
  model.loss(pairs.batch(), buffers);
  const auto encoded = rows(buffers.encoder().final_norm(), 0, 3);
  const auto decoded = rows(buffers.decoder().final_norm(), 0, 3);
  pairs.target[3] = 11;  // the last of the first target
  model.loss(pairs.batch(), buffers);
  EXPECT_EQ(rows(buffers.decoder().final_norm(), 0, 3), decoded);
  pairs.source[3] = 11;  // the last of the first source
  model.loss(pairs.batch(), buffers);
  const auto changed = rows(buffers.encoder().final_norm(), 0, 3);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_NE(std::vector(changed.begin() + 32 * row, changed.begin() + 32 * (row + 1)),
              std::vector(encoded.begin() + 32 * row, encoded.begin() + 32 * (row + 1)));
  }
}

TEST(EncoderDecoder, RecomputedBlocksGiveTheSameGradients) {
  for (const Shape2& shape : shapes()) {
    const Transformer model = initialised(toy(shape));
    const Pairs pairs;
    const Transformer::PairStep step{.dropout = {.active = false}};
    Gradients kept(model.architecture()), recomputed(model.architecture());
    PairBuffers all(model.architecture(), Keep::every_block);
    PairBuffers few(model.architecture(), Keep::residuals);
    model.loss_and_gradients(pairs.batch(), step, all, kept);
    model.loss_and_gradients(pairs.batch(), step, few, recomputed);
    EXPECT_TRUE(std::ranges::equal(kept.all(), recomputed.all()));
  }
}

TEST(EncoderDecoder, DropoutIsOneStreamAStackAndSequence) {
  Transformer model = initialised(toy(shapes()[0]));
  model.set_dropout(0, 0.5F, 0);
  const Pairs pairs;
  PairBuffers buffers(model.architecture(), Keep::every_block);
  Gradients gradients(model.architecture());
  const auto loss = [&](std::uint64_t pass) {
    return model
        .loss_and_gradients(pairs.batch(), {.dropout = {.active = true, .seed = 3, .pass = pass}},
                            buffers, gradients)
        .sum;
  };
  const double first = loss(0);
  EXPECT_EQ(loss(0), first);
  EXPECT_NE(loss(1), first);
}

TEST(EncoderDecoder, RefusesWhatItCannotRun) {
  const Transformer model = initialised(toy(shapes()[0]));
  PairBuffers buffers(model.architecture(), Keep::one_block);
  Pairs pairs;
  pairs.source_starts = {0, 0, 10};
  expect_error(
      ErrorCode::invalid_argument, [&] { model.loss(pairs.batch(), buffers); },
      "source 1 of the batch has no tokens");
  Pairs longer;
  longer.source.assign(25, 4);
  longer.source_starts = {0, 25};
  longer.target_starts = {0, 7};
  expect_error(
      ErrorCode::invalid_argument, [&] { model.loss(longer.batch(), buffers); }, "25 positions",
      "context of 24");
}

TEST(EncoderDecoder, AndOneStackRefuseEachOthersPasses) {
  const Transformer two = initialised(toy(shapes()[0]));
  const Transformer one({.stacks = {make_gpt_config(1, 1, 8, 8, 8)}});
  const std::vector<std::int32_t> tokens{1, 2};
  const std::vector<std::int64_t> row_starts{0, 2};
  const View<const std::int32_t> text{tokens.data(), Shape{1, 2}};
  const StackActivations of_one(one.specification(), 1, 2, Keep::one_block);
  const StackActivations source(two.specification(StackSite::encoder), 1, 2, Keep::one_block);
  const StackActivations target(two.specification(), 1, 2, Keep::one_block, 2);
  expect_error(
      ErrorCode::unsupported,
      [&] {
        two.forward(text, {.sequences = {1, 2}}, target);
      },
      "an encoder and a decoder: expected a model of one stack");
  expect_error(
      ErrorCode::unsupported,
      [&] {
        one.forward({text, {.sequences = {1, 2}, .site = StackSite::encoder}, of_one},
                    {text, {.sequences = {1, 2}, .site = StackSite::decoder}, of_one});
      },
      "one stack: expected an encoder-decoder");
  expect_error(
      ErrorCode::unsupported,
      [&] {
        one.encode({tokens, row_starts}, CacheType::f32);
      },
      "one stack: expected an encoder-decoder");
}

// Doubles what attention adds in the decoder.
class DoublingEditor final : public Editor {
 public:
  bool edits(const Point& point) const override {
    return point.kind == PointKind::attention_out && point.site == StackSite::decoder;
  }
  void edit(const EditedPoint&, View<float> values) override {
    for (float& value : values.span()) value *= 2;
  }
};

TEST(EncoderDecoder, WithAnEditorIsEditedInEveryPass) {
  const Transformer model = initialised(toy(shapes()[0]));
  const auto editor = std::make_shared<DoublingEditor>();
  const Transformer edited = model.with_editor(editor);
  const Pairs pairs;
  const auto losses = [&](const Transformer& of, Editor* given) {
    PairBuffers buffers(of.architecture(), Keep::every_block);
    Gradients gradients(of.architecture());
    of.loss_and_gradients(pairs.batch(), {.dropout = {.active = false}, .editor = given}, buffers,
                          gradients);
    return std::vector<float>(buffers.losses().begin(), buffers.losses().end());
  };
  EXPECT_EQ(losses(edited, nullptr), losses(model, editor.get()));
  EXPECT_NE(losses(edited, nullptr), losses(model, nullptr));
  expect_error(
      ErrorCode::unsupported, [&] { edited.encode(pairs.batch().source, CacheType::f32); },
      "a model with an editor");
}

}  // namespace
}  // namespace heed
