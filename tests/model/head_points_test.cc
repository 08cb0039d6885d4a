// The stream head by head, and the logits, against their definitions.
#include "model/head_points.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "model/comparison.h"
#include "model/transformer.h"

namespace heed {
namespace {

using testing::RecordingProbe;

// Changes one head of one point by a function of (channel, value).
class HeadEditor final : public Editor {
 public:
  using Change = std::function<float(std::int64_t channel, float value)>;

  HeadEditor(Point point, std::int64_t head, Change change)
      : point_(point), head_(head), change_(std::move(change)) {}

  bool edits(const Point& point) const override { return point == point_; }
  bool edits_head(const Point& point, std::int64_t head) const override {
    return point == point_ && head == head_;
  }
  void edit(const EditedPoint&, View<float> values) override {
    for (std::int64_t b = 0; b < values.extent(0); ++b) {
      for (std::int64_t t = 0; t < values.extent(1); ++t) {
        for (std::int64_t c = 0; c < values.extent(3); ++c) {
          float& value = values(b, t, head_, c);
          value = change_(c, value);
        }
      }
    }
  }

 private:
  Point point_;
  std::int64_t head_;
  Change change_;
};

class HeadPoints : public ::testing::Test {
 protected:
  static constexpr std::int64_t positions = 9, heads = 4, size = 8, channels = 32;

  RecordingProbe run(Editor* editor = nullptr) const {
    RecordingProbe probe;
    const StackActivations activations(transformer.specification(), 1, positions, Keep::one_block);
    transformer.forward({tokens.data(), {1, positions}},
                        {.sequences = {1, positions}, .probe = &probe, .editor = editor},
                        activations);
    return probe;
  }

  // Query, key or value (T, D) of a head from rows (T, C) of the stream, in double.
  std::vector<float> projected(std::int64_t third, std::int64_t head,
                               const std::vector<float>& stream) const {
    const BlockParameters& block = transformer.parameters().block(1);
    std::vector<float> out;
    for (std::int64_t t = 0; t < positions; ++t) {
      const float* const x = stream.data() + t * channels;
      double mean = 0, variance = 0;
      for (std::int64_t c = 0; c < channels; ++c) mean += x[c] / double{channels};
      for (std::int64_t c = 0; c < channels; ++c) {
        variance += (x[c] - mean) * (x[c] - mean) / double{channels};
      }
      const double scale = std::sqrt(variance + double{block.norm_1.epsilon});
      for (std::int64_t d = 0; d < size; ++d) {
        const std::int64_t row = (third * heads + head) * size + d;
        double sum = block.query_key_value.bias(row);
        for (std::int64_t c = 0; c < channels; ++c) {
          const double normed = (x[c] - mean) / scale * block.norm_1.gain(c) + block.norm_1.bias(c);
          sum += normed * block.query_key_value.weight(row, c);
        }
        out.push_back(static_cast<float>(sum));
      }
    }
    return out;
  }

  // One head (T, W) of recorded values (1, T, H, W).
  static std::vector<float> of_head(const RecordingProbe& probe, const std::string& name,
                                    std::int64_t head) {
    const RecordingProbe::Record& record = probe.records.at(name);
    const std::int64_t width = record.shape[3];
    std::vector<float> values;
    for (std::int64_t t = 0; t < positions; ++t) {
      const auto row = record.values.begin() + (t * heads + head) * width;
      values.insert(values.end(), row, row + width);
    }
    return values;
  }

  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(positions, 61, 3);
};

TEST_F(HeadPoints, UneditedInputsAreTheStream) {
  const RecordingProbe probe = run();
  const auto& stream = probe.records.at("blocks.1.hook_resid_pre").values;
  for (const char* name : {"hook_attn_in", "hook_q_input", "hook_k_input", "hook_v_input"}) {
    for (std::int64_t head = 0; head < heads; ++head) {
      EXPECT_EQ(of_head(probe, fmt::format("blocks.1.{}", name), head), stream) << name;
    }
  }
  EXPECT_EQ(probe.records.at("blocks.1.hook_mlp_in").values,
            probe.records.at("blocks.1.hook_resid_mid").values);
}

// f32 against double: 32 products and a norm.
TEST_F(HeadPoints, AnEditedInputChangesOnlyItsHeadsProjection) {
  constexpr std::array<std::pair<PointKind, const char*>, 3> inputs{
      {{PointKind::query_input, "q"}, {PointKind::key_input, "k"}, {PointKind::value_input, "v"}}};
  const RecordingProbe plain = run();
  const auto change = [](std::int64_t c, float value) {
    return value + (c % 3 == 0 ? 0.5F : -0.25F * value);
  };
  for (std::int64_t third = 0; third < 3; ++third) {
    HeadEditor editor({inputs[third].first, 1}, 2, change);
    const RecordingProbe edited = run(&editor);
    auto stream = plain.records.at("blocks.1.hook_resid_pre").values;
    for (std::size_t i = 0; i < stream.size(); ++i) stream[i] = change(i % channels, stream[i]);
    EXPECT_EQ(of_head(edited, point_name({inputs[third].first, 1}), 2), stream);
    EXPECT_EQ(edited.records.at("blocks.1.hook_resid_pre"),
              plain.records.at("blocks.1.hook_resid_pre"));
    for (std::int64_t other = 0; other < 3; ++other) {
      const std::string name = fmt::format("blocks.1.attn.hook_{}", inputs[other].second);
      for (std::int64_t head = 0; head < heads; ++head) {
        if (other == third && head == 2) {
          EXPECT_LT(
              testing::relative_error(of_head(edited, name, head), projected(third, head, stream)),
              1e-6)
              << name;
        } else {
          EXPECT_EQ(of_head(edited, name, head), of_head(plain, name, head)) << name << head;
        }
      }
    }
  }
}

TEST_F(HeadPoints, AttentionInIsTheInputOfAllThree) {
  HeadEditor editor({PointKind::attention_in, 1}, 0, [](std::int64_t, float x) { return x * x; });
  const RecordingProbe edited = run(&editor);
  const std::vector<float> stream = of_head(edited, "blocks.1.hook_attn_in", 0);
  const std::array names{"q", "k", "v"};
  for (std::int64_t third = 0; third < 3; ++third) {
    EXPECT_EQ(of_head(edited, fmt::format("blocks.1.hook_{}_input", names[third]), 0), stream);
    EXPECT_LT(testing::relative_error(
                  of_head(edited, fmt::format("blocks.1.attn.hook_{}", names[third]), 0),
                  projected(third, 0, stream)),
              1e-6);
  }
}

TEST_F(HeadPoints, ResultsAndTheBiasSumToWhatAttentionAdds) {
  HeadEditor editor({PointKind::head_results, 1}, 3, [](std::int64_t, float x) { return 2 * x; });
  for (Editor* const used : {static_cast<Editor*>(nullptr), static_cast<Editor*>(&editor)}) {
    const RecordingProbe probe = run(used);
    const View<const float> bias = transformer.parameters().block(1).projection.bias;
    std::vector<float> sum(positions * channels);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = bias(i % channels);
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::vector<float> result = of_head(probe, "blocks.1.attn.hook_result", head);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += result[i];
    }
    EXPECT_LT(testing::relative_error(probe.records.at("blocks.1.hook_attn_out").values, sum),
              1e-6);
  }
}

TEST_F(HeadPoints, AnEditedResultIsItsHeadsShare) {
  HeadEditor editor({PointKind::head_results, 1}, 3, [](std::int64_t, float) { return 0; });
  const RecordingProbe plain = run(), edited = run(&editor);
  const std::vector<float> result = of_head(plain, "blocks.1.attn.hook_result", 3);
  std::vector<float> expected = plain.records.at("blocks.1.hook_attn_out").values;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= result[i];
  EXPECT_LT(testing::relative_error(edited.records.at("blocks.1.hook_attn_out").values, expected),
            1e-6);
}

TEST_F(HeadPoints, LogitsAreThoseOfTheModel) {
  const Tensor<float> expected = testing::full_logits(transformer, tokens);
  EXPECT_EQ(testing::relative_error(run().records.at("unembed.hook_out").values, expected.span()),
            0);
}

TEST_F(HeadPoints, LogitsCannotBeEdited) {
  HeadEditor editor({PointKind::logits}, 0, [](std::int64_t, float x) { return x; });
  testing::expect_error(
      ErrorCode::unsupported, [&] { run(&editor); }, "unembed.hook_out cannot be edited");
}

}  // namespace
}  // namespace heed
