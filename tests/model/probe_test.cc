#include "model/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/cache.h"
#include "model/comparison.h"
#include "model/transformer.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

using testing::RecordingProbe;

constexpr std::int64_t batch = 2, positions = 6, layers = 2, heads = 3, head_size = 4;
constexpr std::int64_t channels = 12, feed_forward = 48, vocabulary = 11;

StackSpecification probed_config() {
  StackSpecification config = make_gpt_config(layers, heads, channels, 8, vocabulary);
  config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0.2F;
  return config;
}

Tensor<std::int32_t> some_tokens(std::int64_t factor) {
  Tensor<std::int32_t> tokens(Shape{batch, positions});
  for (std::int64_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>((i * factor + 3) % vocabulary);
  }
  return tokens;
}

// The shape that probe.h promises for T positions whose queries see S.
Shape promised_shape(PointKind kind, std::int64_t t, std::int64_t s) {
  switch (kind) {
    case PointKind::norm_1_scale:
    case PointKind::norm_2_scale:
    case PointKind::final_scale: return {batch, t, 1};
    case PointKind::query:
    case PointKind::key:
    case PointKind::value:
    case PointKind::mixed_values: return {batch, t, heads, head_size};
    case PointKind::attention_in:
    case PointKind::query_input:
    case PointKind::key_input:
    case PointKind::value_input:
    case PointKind::head_results: return {batch, t, heads, channels};
    case PointKind::logits: return {batch, t, vocabulary};
    case PointKind::scores:
    case PointKind::pattern: return {batch, heads, t, s};
    case PointKind::neurons_pre:
    case PointKind::neurons_post: return {batch, t, feed_forward};
    default: return {batch, t, channels};
  }
}

void expect_all_points(const RecordingProbe& probe, std::int64_t t, std::int64_t s) {
  EXPECT_EQ(probe.order, all_points(layers));
  for (const Point& point : all_points(layers)) {
    EXPECT_EQ(probe.records.at(point_name(point)).shape, promised_shape(point.kind, t, s))
        << point_name(point);
  }
}

TEST(Probe, ChangesNothingInTraining) {
  Transformer transformer({.stacks = {probed_config()}});
  transformer.parameters().initialize(4);
  const auto tokens = some_tokens(7);
  const auto targets = some_tokens(5);
  const auto step = [&](Probe* probe, Gradients& gradients) {
    TrainingBuffers buffers(transformer.specification(), batch, positions);
    return transformer.loss_and_gradients(
        tokens, targets, {.dropout = {.active = true, .seed = 1, .pass = 2}, .probe = probe},
        buffers, gradients);
  };
  RecordingProbe probe;
  probe.gradients_wanted = true;
  Gradients plain(transformer.architecture());
  Gradients probed(transformer.architecture());
  EXPECT_EQ(step(nullptr, plain).sum, step(&probe, probed).sum);
  EXPECT_TRUE(std::ranges::equal(plain.all(), probed.all()));
  expect_all_points(probe, positions, positions);
  for (const Point& point : all_points(layers)) {
    EXPECT_EQ(probe.gradients.at(point_name(point)).shape,
              promised_shape(point.kind, positions, positions))
        << point_name(point);
  }
}

// With dropout: what the gradients of points imply must be the gradients that backward computed.
TEST(Probe, SeesGradientsBehindDropout) {
  Transformer transformer({.stacks = {probed_config()}});
  transformer.parameters().initialize(4);
  RecordingProbe probe;
  probe.gradients_wanted = true;
  TrainingBuffers buffers(transformer.specification(), batch, positions);
  Gradients gradients(transformer.architecture());
  transformer.loss_and_gradients(
      some_tokens(7), some_tokens(5),
      {.dropout = {.active = true, .seed = 1, .pass = 2}, .probe = &probe}, buffers, gradients);

  // A row of the position table is added in every sequence.
  const auto& d_position = probe.gradients.at("hook_pos_embed").values;
  for (std::int64_t i = 0; i < positions * channels; ++i) {
    const float sum = d_position[i] + d_position[positions * channels + i];
    EXPECT_FLOAT_EQ(gradients.tensor(testing::gpt2_parameter("wpe.weight")).data()[i], sum);
  }

  // ∂loss/∂query = scale · ∂loss/∂scores · key, whatever dropout took out of the pattern.
  const auto& d_query = probe.gradients.at("blocks.1.attn.hook_q").values;
  const auto& d_scores = probe.gradients.at("blocks.1.attn.hook_attn_scores").values;
  const auto& key = probe.records.at("blocks.1.attn.hook_k").values;
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_size));
  for (std::int64_t i = 0; i < std::ssize(d_query); ++i) {
    const std::int64_t d = i % head_size, h = i / head_size % heads;
    const std::int64_t t = i / (head_size * heads) % positions;
    const std::int64_t b = i / (head_size * heads * positions);
    double sum = 0;
    for (std::int64_t s = 0; s < positions; ++s) {
      sum += scale * d_scores[((b * heads + h) * positions + t) * positions + s] *
             key[((b * positions + s) * heads + h) * head_size + d];
    }
    EXPECT_NEAR(d_query[i], sum, 1e-6) << i;
  }
}

// Hands over final norms (B·T, C) of a pass of tokens [begin, end) of every sequence.
std::vector<float> pass(const Transformer& transformer, KeyValueCache& cache, std::int64_t begin,
                        std::int64_t end, Probe* probe) {
  const auto all = some_tokens(7);
  Tensor<std::int32_t> tokens(Shape{batch, end - begin});
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = begin; t < end; ++t) {
      tokens.view()(b, t - begin) = all.view()(b, t);
    }
  }
  const StackActivations activations(transformer.specification(), batch, end - begin,
                                     Keep::one_block);
  transformer.forward(tokens, {.sequences = Sequences::next_of(cache, end - begin), .probe = probe},
                      activations);
  const auto norms = activations.final_norm().span();
  return {norms.begin(), norms.end()};
}

TEST(Probe, ChangesNothingInPrefillAndCachedDecoding) {
  Transformer transformer({.stacks = {probed_config()}});
  transformer.parameters().initialize(4);
  KeyValueCache plain(transformer.specification(), batch, 8);
  KeyValueCache probed(transformer.specification(), batch, 8);
  RecordingProbe prefill;
  EXPECT_EQ(pass(transformer, plain, 0, 4, nullptr), pass(transformer, probed, 0, 4, &prefill));
  expect_all_points(prefill, 4, 4);
  for (std::int64_t t = 4; t < positions; ++t) {
    RecordingProbe step;
    EXPECT_EQ(pass(transformer, plain, t, t + 1, nullptr),
              pass(transformer, probed, t, t + 1, &step));
    expect_all_points(step, 1, t + 1);
  }
}

TEST(Probe, SeesTheSameInCachedDecodingAsInOnePass) {
  Transformer transformer({.stacks = {probed_config()}});
  transformer.parameters().initialize(4);
  KeyValueCache whole_cache(transformer.specification(), batch, 8);
  KeyValueCache cache(transformer.specification(), batch, 8);
  RecordingProbe whole;
  RecordingProbe last;
  pass(transformer, whole_cache, 0, positions, &whole);
  pass(transformer, cache, 0, positions - 1, nullptr);
  pass(transformer, cache, positions - 1, positions, &last);
  // The last row of each head's (T, S) plane.
  const auto& planes = whole.records.at("blocks.1.attn.hook_pattern").values;
  const auto& rows = last.records.at("blocks.1.attn.hook_pattern").values;
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(batch * heads * positions));
  for (std::int64_t plane = 0; plane < batch * heads; ++plane) {
    double sum = 0;
    for (std::int64_t s = 0; s < positions; ++s) {
      const float value = rows[static_cast<std::size_t>(plane * positions + s)];
      const std::int64_t in_plane = (plane * positions + positions - 1) * positions + s;
      EXPECT_NEAR(value, planes[static_cast<std::size_t>(in_plane)], 1e-6);
      sum += value;
    }
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
}

TEST(Probe, GetsNoPointsThatItDoesNotWant) {
  class Modest : public RecordingProbe {
   public:
    bool wants(const Point&) const override { return false; }
  };
  Transformer transformer({.stacks = {probed_config()}});
  transformer.parameters().initialize(4);
  KeyValueCache cache(transformer.specification(), batch, 8);
  Modest probe;
  pass(transformer, cache, 0, 3, &probe);
  EXPECT_THAT(probe.records, ::testing::IsEmpty());
}

TEST(PointName, IsReadBack) {
  for (const Point& point : all_points(13)) EXPECT_EQ(point_from_name(point_name(point)), point);
  EXPECT_EQ(point_name({PointKind::pattern, 3}), "blocks.3.attn.hook_pattern");
  EXPECT_EQ(point_name({PointKind::final_scale}), "ln_final.hook_scale");
  EXPECT_EQ(all_points(13).size(), 6U + 13U * 23U);
}

TEST(PointName, IsNothingWhenUnknown) {
  for (const char* name :
       {"", "hook_embeds", "blocks", "blocks.", "blocks.3", "blocks.3.", "blocks.x.hook_resid_pre",
        "blocks.-1.hook_resid_pre", "blocks.1hook_resid_pre", "blocks.0.hook_embed",
        "hook_resid_pre", "blocks.99999999999999999999.hook_resid_pre", "blocks.1.attn.hook_qq"}) {
    EXPECT_EQ(point_from_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace heed
