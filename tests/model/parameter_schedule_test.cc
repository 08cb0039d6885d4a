// The model announces every use of its parameters and gradients: between uses they may be anything.
#include "model/parameter_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/architecture_presets.h"
#include "model/encoder_decoder.h"
#include "model/gpt.h"

namespace heed {
namespace {

// Keeps parameters and gradients away from the model, where they are not numbers.
class AwaySchedule final : public ParameterSchedule {
 public:
  AwaySchedule(const Architecture& architecture, GptParameters& parameters, GptGradients& gradients)
      : ranges_(part_ranges(architecture)),
        parameters_(parameters),
        gradients_(gradients),
        kept_(parameters.all().begin(), parameters.all().end()),
        sums_(gradients.all().size()),
        readers_(ranges_.size()),
        completed_(ranges_.size()) {
    poison(parameters.all());
    poison(gradients.all());
    parameters.set_schedule(this);
    gradients.set_schedule(this);
  }
  AwaySchedule(const AwaySchedule&) = delete;
  AwaySchedule& operator=(const AwaySchedule&) = delete;
  ~AwaySchedule() override {
    parameters_.set_schedule(nullptr);
    gradients_.set_schedule(nullptr);
    std::ranges::copy(kept_, parameters_.all().begin());
  }

  void will_read(const ParameterPart& part) override {
    const auto i = find(part);
    if (i < 0) return;
    ++readers_[static_cast<std::size_t>(i)];
    const auto [begin, size] = span_of(i);
    std::copy_n(kept_.begin() + static_cast<std::ptrdiff_t>(begin), size,
                parameters_.all().begin() + static_cast<std::ptrdiff_t>(begin));
  }
  void has_read(const ParameterPart& part) override {
    const auto i = find(part);
    if (i < 0 || --readers_[static_cast<std::size_t>(i)] > 0) return;
    const auto [begin, size] = span_of(i);
    poison(parameters_.all().subspan(begin, size));
  }
  void will_add(const ParameterPart& part) override {
    const auto i = find(part);
    if (i < 0) return;
    const auto [begin, size] = span_of(i);
    const auto values = gradients_.all().subspan(begin, size);
    if (std::isnan(values.front())) std::ranges::fill(values, 0.0F);
  }
  void has_added(const ParameterPart& part, GradientState state) override {
    const auto i = find(part);
    if (i < 0) return;
    if (state == GradientState::complete) ++completed_[static_cast<std::size_t>(i)];
    const auto [begin, size] = span_of(i);
    const auto values = gradients_.all().subspan(begin, size);
    ASSERT_FALSE(std::isnan(values.front())) << "announced";
    for (std::size_t at = 0; at < size; ++at) sums_[begin + at] += values[at];
    poison(values);
  }

  const std::vector<float>& sums() const { return sums_; }
  const std::vector<int>& completed() const { return completed_; }
  bool is_read() const {
    return std::ranges::any_of(readers_, [](int count) { return count != 0; });
  }

 private:
  static void poison(std::span<float> values) {
    std::ranges::fill(values, std::numeric_limits<float>::quiet_NaN());
  }
  std::ptrdiff_t find(const ParameterPart& part) const {
    const auto found = std::ranges::find(ranges_, part, &PartRange::part);
    return found == ranges_.end() ? -1 : found - ranges_.begin();
  }
  std::pair<std::size_t, std::size_t> span_of(std::ptrdiff_t i) const {
    const PartRange& range = ranges_[static_cast<std::size_t>(i)];
    return {range.begin, range.end - range.begin};
  }

  std::vector<PartRange> ranges_;
  GptParameters& parameters_;
  GptGradients& gradients_;
  std::vector<float> kept_;
  std::vector<float> sums_;
  std::vector<int> readers_;
  std::vector<int> completed_;
};

void expect_near(std::span<const float> values, std::span<const float> expected) {
  ASSERT_EQ(values.size(), expected.size());
  float largest = 0;
  for (const float each : expected) largest = std::max(largest, std::abs(each));
  // Parts that are added to twice are sums of two sums.
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], 1e-6F * largest) << i;
  }
}

constexpr std::int32_t pass_tokens[] = {3, 1, 4, 1, 5, 9, 2, 6};
constexpr std::int32_t next_tokens[] = {1, 4, 1, 5, 9, 2, 6, 5};

void check_gpt(const StackSpecification& config, Keep keep) {
  const Shape shape{2, 4};
  const View<const std::int32_t> read(pass_tokens, shape), predicted(next_tokens, shape);
  Gpt gpt(config);
  gpt.parameters().initialize(7);
  GptGradients gradients(config);
  TrainingBuffers buffers(config, 2, 4, keep);
  const Gpt::Step step{.scale = 0.5F, .dropout = {.active = true, .seed = 1}};
  const double expected = gpt.loss_and_gradients(read, predicted, step, buffers, gradients).mean();
  EvaluationBuffers evaluation(config, 2, 4);
  const double evaluated = gpt.loss(read, predicted, evaluation).mean();

  GptGradients away(config);
  const AwaySchedule schedule({.stacks = {config}}, gpt.parameters(), away);
  EXPECT_EQ(gpt.loss_and_gradients(read, predicted, step, buffers, away).mean(), expected);
  EXPECT_EQ(gpt.loss(read, predicted, evaluation).mean(), evaluated);
  expect_near(schedule.sums(), gradients.all());
  EXPECT_FALSE(schedule.is_read());
  EXPECT_TRUE(std::ranges::all_of(schedule.completed(), [](int count) { return count == 1; }));
}

TEST(ParameterSchedule, OfOneStack) {
  StackSpecification config = make_gpt_config(3, 2, 16, 8, 20);
  config.residual_dropout = 0.1F;
  check_gpt(config, Keep::every_block);
  check_gpt(config, Keep::residuals);
  config.tied_unembedding = false;
  config.embedding_norm = true;
  check_gpt(config, Keep::every_block);
}

TEST(ParameterSchedule, PartsMakeUpTheArena) {
  const Architecture architecture{.stacks = {make_gpt_config(3, 2, 16, 8, 20)}};
  const auto ranges = part_ranges(architecture);
  ASSERT_EQ(ranges.size(), 5U);
  std::size_t end = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(ranges[i].begin, end);
    EXPECT_EQ(ranges[i].part.layer, static_cast<std::int64_t>(i) - 1);
    end = ranges[i].end;
  }
  EXPECT_EQ(end, static_cast<std::size_t>(parameter_layout(architecture).size()));
}

TEST(ParameterSchedule, OfEncoderAndDecoder) {
  for (const bool shares : {true, false}) {
    Architecture architecture = original_transformer({.layers = 2,
                                                      .heads = 2,
                                                      .channels = 16,
                                                      .feed_forward = 32,
                                                      .context = 8,
                                                      .vocabulary_size = 20});
    architecture.shared_embedding = shares;
    const std::int64_t starts[] = {0, 3, 8};
    const PairBatch batch{
        .source = {pass_tokens, starts}, .target = {pass_tokens, starts}, .next = next_tokens};
    EncoderDecoder model(architecture);
    model.parameters().initialize(3);
    GptGradients gradients(architecture), away(architecture);
    PairBuffers buffers(architecture, Keep::every_block);
    const EncoderDecoder::Step step{.dropout = {.active = true, .seed = 4}};
    const double expected = model.loss_and_gradients(batch, step, buffers, gradients).mean();
    const AwaySchedule schedule(architecture, model.parameters(), away);
    EXPECT_EQ(model.loss_and_gradients(batch, step, buffers, away).mean(), expected);
    expect_near(schedule.sums(), gradients.all());
    EXPECT_TRUE(std::ranges::all_of(schedule.completed(), [](int count) { return count == 1; }));
    // Decoding reads the same parameters, step by step.
    const EncodedSources encoded = model.encode(batch.source, CacheType::f32);
    for (const float value : encoded.rows.span()) ASSERT_TRUE(std::isfinite(value));
    EXPECT_FALSE(schedule.is_read());
  }
}

}  // namespace
}  // namespace heed
