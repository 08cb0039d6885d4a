// The model announces every use of its parameters and gradients: between uses they may be anything.
#include "model/parameter_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/presets.h"
#include "model/transformer.h"

namespace heed {
namespace {

// Keeps parameters and gradients away from the model, where they are not numbers.
class AwaySchedule final : public ParameterSchedule {
 public:
  AwaySchedule(const Architecture& architecture, Parameters& parameters, Gradients& gradients,
               std::int64_t piece_rows)
      : ranges_(part_ranges(architecture, piece_rows)),
        parameters_(parameters),
        gradients_(gradients),
        kept_(parameters.all().begin(), parameters.all().end()),
        sums_(gradients.all().size()),
        readers_(ranges_.size()),
        completed_(ranges_.size()) {
    poison(parameters.all());
    poison(gradients.all());
    parameters.set_schedule(this, piece_rows);
    gradients.set_schedule(this, piece_rows);
  }
  AwaySchedule(const AwaySchedule&) = delete;
  AwaySchedule& operator=(const AwaySchedule&) = delete;
  ~AwaySchedule() override {
    parameters_.set_schedule(nullptr);
    gradients_.set_schedule(nullptr);
    std::ranges::copy(kept_, parameters_.all().begin());
  }

  void will_read(const ParameterPart& part) override {
    for_each_range(part, [&](std::size_t i, std::size_t begin, std::size_t size) {
      ++readers_[i];
      std::copy_n(kept_.begin() + static_cast<std::ptrdiff_t>(begin), size,
                  parameters_.all().begin() + static_cast<std::ptrdiff_t>(begin));
    });
  }
  void has_read(const ParameterPart& part) override {
    for_each_range(part, [&](std::size_t i, std::size_t begin, std::size_t size) {
      if (--readers_[i] == 0) poison(parameters_.all().subspan(begin, size));
    });
  }
  void will_add(const ParameterPart& part) override {
    for_each_range(part, [&](std::size_t, std::size_t begin, std::size_t size) {
      const auto values = gradients_.all().subspan(begin, size);
      if (std::isnan(values.front())) std::ranges::fill(values, 0.0F);
    });
  }
  void has_added(const ParameterPart& part, GradientState state) override {
    for_each_range(part, [&](std::size_t i, std::size_t begin, std::size_t size) {
      if (state == GradientState::complete) ++completed_[i];
      const auto values = gradients_.all().subspan(begin, size);
      ASSERT_FALSE(std::isnan(values.front())) << "announced";
      for (std::size_t at = 0; at < size; ++at) sums_[begin + at] += values[at];
      poison(values);
    });
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
  // A part may have several.
  template <class Body>
  void for_each_range(const ParameterPart& part, Body&& body) const {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      if (ranges_[i].part == part) body(i, ranges_[i].begin, ranges_[i].end - ranges_[i].begin);
    }
  }

  std::vector<PartRange> ranges_;
  Parameters& parameters_;
  Gradients& gradients_;
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

// Losses of pieces are sums of other sums: normalisers of up to 8 nats are rounded once a piece.
void expect_equal(const LossSum& found, const LossSum& expected, bool in_pieces) {
  const double tolerance = in_pieces ? 8 * 8 * 6e-8 : 0;
  EXPECT_NEAR(found.mean(), expected.mean(), tolerance);
  EXPECT_NEAR(found.smoothed_mean(), expected.smoothed_mean(), tolerance);
  EXPECT_EQ(found.count, expected.count);
}

constexpr std::int32_t pass_tokens[] = {3, 1, 4, 1, 5, 9, 2, 6};
constexpr std::int32_t next_tokens[] = {1, 4, 1, 5, 9, 2, 6, kernels::ignored_target};

// Tables that come in pieces of `piece_rows` rows; 0: whole.
void check_stack(const StackSpecification& config, Keep keep, std::int64_t piece_rows = 0,
                 std::int64_t chunk_rows = VocabularyLoss::max_chunk_rows) {
  const Shape shape{2, 4};
  const View<const std::int32_t> read(pass_tokens, shape), predicted(next_tokens, shape);
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(7);
  Gradients gradients({.stacks = {config}});
  TrainingBuffers buffers(config, 2, 4, keep);
  buffers.loss = VocabularyLoss(config.vocabulary_size, 0.1F, chunk_rows);
  const Transformer::Step step{.scale = 0.5F, .dropout = {.active = true, .seed = 1}};
  const LossSum expected =
      transformer.loss_and_gradients(read, predicted, step, buffers, gradients);
  EvaluationBuffers evaluation(config, 2, 4);
  evaluation.loss = VocabularyLoss(config.vocabulary_size, 0.1F, chunk_rows);
  const LossSum evaluated = transformer.loss(read, predicted, evaluation);
  const View<const float> ends = evaluation.activations.unembedding_in();
  Tensor<float> logits(Shape{8, config.vocabulary_size}), away_logits(logits.shape());
  transformer.project(ends, logits, 4);

  Gradients away({.stacks = {config}});
  const AwaySchedule schedule({.stacks = {config}}, transformer.parameters(), away, piece_rows);
  expect_equal(transformer.loss_and_gradients(read, predicted, step, buffers, away), expected,
               piece_rows > 0);
  expect_equal(transformer.loss(read, predicted, evaluation), evaluated, piece_rows > 0);
  transformer.project(ends, away_logits, 4);
  EXPECT_TRUE(std::ranges::equal(away_logits.span(), logits.span()));
  expect_near(schedule.sums(), gradients.all());
  EXPECT_FALSE(schedule.is_read());
  EXPECT_TRUE(std::ranges::all_of(schedule.completed(), [](int count) { return count == 1; }));
}

TEST(ParameterSchedule, OfOneStack) {
  StackSpecification config = make_gpt_config(3, 2, 16, 8, 20);
  config.residual_dropout = 0.1F;
  check_stack(config, Keep::every_block);
  check_stack(config, Keep::residuals);
  config.tied_unembedding = false;
  config.embedding_norm = true;
  check_stack(config, Keep::every_block);
}

TEST(ParameterSchedule, TablesInPieces) {
  StackSpecification config = make_gpt_config(3, 2, 16, 8, 20);
  config.embedding_scale = 1.5F;
  for (const bool tied : {true, false}) {
    config.tied_unembedding = tied;
    config.unembedding_bias = tied;
    for (const std::int64_t rows : {1, 7, 19, 20}) {
      check_stack(config, Keep::every_block, rows);
      check_stack(config, Keep::residuals, rows, 3);  // logits of a chunk are computed again
    }
  }
  config.unembedding_bias = true;  // behind a divided table
  check_stack(config, Keep::every_block, 7);
}

// As blocks are, but no smaller than 4 MiB.
TEST(ParameterSchedule, PiecesAreAsLargeAsABlock) {
  const auto rows_of = [](const StackSpecification& config) {
    return table_piece_rows({.stacks = {config}});
  };
  EXPECT_EQ(rows_of(model_preset("gpt2").config), (50257 + 5) / 6)
      << "6 pieces of 7 million numbers";
  EXPECT_EQ(rows_of(make_gpt_config(3, 2, 64, 8, 16384)), 0) << "a table of 4 MiB";
  EXPECT_EQ(rows_of(make_gpt_config(3, 2, 64, 8, 16385)), 8193);
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
  for (const auto& [shares, piece_rows] : {std::pair{true, 0}, {false, 0}, {true, 7}, {false, 7}}) {
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
    Transformer model(architecture);
    model.parameters().initialize(3);
    Gradients gradients(architecture), away(architecture);
    PairBuffers buffers(architecture, Keep::every_block);
    const Transformer::PairStep step{.dropout = {.active = true, .seed = 4}};
    const LossSum expected = model.loss_and_gradients(batch, step, buffers, gradients);
    const AwaySchedule schedule(architecture, model.parameters(), away, piece_rows);
    expect_equal(model.loss_and_gradients(batch, step, buffers, away), expected, piece_rows > 0);
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
