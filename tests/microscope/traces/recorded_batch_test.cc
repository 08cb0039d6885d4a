// Recorded passes over batches: each text has the numbers that it has alone.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "base/expect_error.h"
#include "microscope/attention/head_scan.h"
#include "microscope/families.h"
#include "microscope/intervene/intervention.h"
#include "microscope/toy_pairs.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/gradients.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/comparison.h"
#include "support/small_model.h"

namespace heed {
namespace {

using testing::relative_error;
using testing::same_bits;
using testing::toy_pair_shapes;

constexpr std::int64_t batch_context = 24;

// A pass of one text sums products in another order than one of many rows. Sums of up to 64
// products err by √64·2⁻²⁴ = 5e-7 of their norm, and four of them follow one another in each of two
// or three blocks: √12·5e-7.
constexpr double summation_tolerance = 2e-6;
// Backward passes through as many products again, from an error of that size.
constexpr double gradient_tolerance = 1e-5;
// The gradient of scores is p·(d − Σ p·d): where a query sees nearly one key alone, a difference of
// numbers alike, here down to a twentieth of them. That of a norm's scale is a sum over channels of
// either sign.
constexpr double cancelling_tolerance = 1e-4;

double tolerance_of_gradient(PointKind kind) {
  switch (kind) {
    case PointKind::scores:
    case PointKind::query:
    case PointKind::key:
    case PointKind::rotated_query:
    case PointKind::rotated_key:
    case PointKind::query_input:
    case PointKind::key_input:
    case PointKind::cross_scores:
    case PointKind::norm_1_scale:
    case PointKind::norm_2_scale:
    case PointKind::cross_norm_scale:
    case PointKind::final_scale:
    case PointKind::cross_query:
    case PointKind::cross_key: return cancelling_tolerance;
    default: return gradient_tolerance;
  }
}

// A decoder or an encoder, or an encoder-decoder, and three of its texts of different lengths.
struct BatchCase {
  std::string name;
  Architecture architecture;

  Transformer model() const {
    if (architecture.is_encoder_decoder()) return testing::toy_translator(architecture);
    return testing::toy_transformer(architecture.decoder());
  }
  std::vector<Texts> texts() const {
    if (architecture.is_encoder_decoder()) {
      return {testing::toy_pair(),
              {.source = {9, 2}, .target = {1, 40, 3, 3, 21, 17, 11, 8}},
              {.source = {31, 7, 7, 7, 13, 28, 40, 49, 16, 2}, .target = {1}}};
    }
    return {{.target = testing::random_tokens(5, 61, 1)},
            {.target = testing::random_tokens(1, 61, 2)},
            {.target = testing::random_tokens(19, 61, 3)}};
  }
  friend std::ostream& operator<<(std::ostream& out, const BatchCase& each) {
    return out << each.name;
  }
};

std::vector<BatchCase> batch_cases() {
  std::vector<BatchCase> cases;
  for (const testing::ToyFamily& family : testing::every_toy_family(batch_context)) {
    cases.push_back({family.name, {.stacks = {family.stack}}});
  }
  StackSpecification encoder = testing::toy_stack(batch_context);
  encoder.role = StackRole::encoder;
  encoder.block.attention.mask.kind = MaskKind::full;
  encoder.block.norm.placement = NormPlacement::post;
  encoder.final_norm = false;
  cases.push_back({"encoder", {.stacks = {encoder}}});
  for (const testing::ToyPairShape& shape : toy_pair_shapes()) {
    cases.push_back({fmt::format("translator, norms {}, {}, {}", static_cast<int>(shape.placement),
                                 position_kind_name(shape.positions), norm_kind_name(shape.norm)),
                     testing::toy_pair_architecture(shape)});
  }
  return cases;
}

class RecordedBatch : public ::testing::TestWithParam<BatchCase> {
 protected:
  Transformer model_ = GetParam().model();
  std::vector<Texts> texts_ = GetParam().texts();

  StackSite last() const {
    return model_.architecture().is_encoder_decoder() ? StackSite::decoder : StackSite::only;
  }
  // Halves the stream from the text's second position on, and what a head sees.
  std::shared_ptr<Editor> editor() const {
    const PointKind pattern = PointKind::pattern;
    return std::make_shared<Interventions>(
        model_.architecture(),
        std::vector<Intervention>{
            {{PointKind::residual_pre, 1, last()}, {.first_position = 1}, ScaleBy{0.5F}},
            {{pattern, 0, last()}, {.heads = {2}, .first_position = 1}, ScaleBy{0.25F}}});
  }
};

// Values of a point of a batch that belong to text b: rows of theirs, or planes without padding.
std::vector<float> of_text(const RecordedPass& batch, const Point& point, View<const float> values,
                           std::int64_t b) {
  std::vector<float> own;
  if (is_plane(point.kind)) {
    const AttentionSite site = site_of_pattern(pattern_of(point));
    const std::int64_t queries = batch.sequences(site.stack)[b].length();
    const StackSite read = site.kind == AttentionKind::cross ? StackSite::encoder : site.stack;
    const std::int64_t keys = batch.sequences(read)[b].length();
    for (std::int64_t head = 0; head < values.extent(1); ++head) {
      testing::append_elements(values[b][head].slice(0, 0, queries).slice(1, 0, keys), own);
    }
    return own;
  }
  const StackSite site = has_source_rows(point) ? StackSite::encoder : point.site;
  const Sequence rows = batch.sequences(site)[b];
  testing::append_elements(values.slice(1, rows.row_begin, rows.row_end), own);
  return own;
}

std::vector<float> elements(View<const float> values) {
  std::vector<float> all;
  testing::append_elements(values, all);
  return all;
}

void expect_each_as_alone(const Transformer& model, const std::vector<Texts>& texts,
                          const std::shared_ptr<Editor>& editor) {
  const RecordedPass batch(model, texts, editor);
  ASSERT_TRUE(batch.sequences().is_ragged());
  for (std::int64_t b = 0; b < std::ssize(texts); ++b) {
    const RecordedPass alone(model, texts[static_cast<std::size_t>(b)], editor);
    for (const Point& point : all_points(model.architecture())) {
      EXPECT_LE(relative_error(of_text(batch, point, batch.computed(point), b),
                               elements(alone.computed(point))),
                summation_tolerance)
          << point_name(point) << " of text " << b;
    }
    const Tensor<float> logits = batch.logits(), own = alone.logits();
    const std::int64_t length = alone.positions();
    EXPECT_LE(relative_error(elements(logits.view()[b].slice(0, 0, length)), own.span()),
              summation_tolerance);
    for (std::int64_t t = length; t < batch.positions(); ++t) {
      EXPECT_EQ(logits.view()(b, t, 0), 0);
    }
  }
}

TEST_P(RecordedBatch, HasThePointsOfEachTextAlone) {
  expect_each_as_alone(model_, texts_, nullptr);
}

TEST_P(RecordedBatch, IsEditedTextByText) {
  expect_each_as_alone(model_, texts_, editor());
  // The edit is one: the last text differs without it.
  const RecordedPass plain(model_, texts_), edited(model_, texts_, editor());
  EXPECT_GT(relative_error(edited.final_rows(last()).span(), plain.final_rows(last()).span()),
            1e-3);
}

TEST_P(RecordedBatch, ReplaysWhatAProbeOfThePassSees) {
  const std::vector<Point> points = all_points(model_.architecture());
  for (const Keep keep : {Keep::every_block, Keep::points}) {
    Capture shown(points), replayed(points);
    const RecordedPass live(model_, texts_, editor(),
                            {.keep = Keep::one_block, .observer = &shown});
    const RecordedPass pass(model_, texts_, editor(), {.keep = keep});
    pass.replay(replayed);
    for (const Point& point : points) {
      EXPECT_TRUE(same_bits(shown.at(point), replayed.at(point))) << point_name(point);
      EXPECT_TRUE(same_bits(shown.at(point), pass.computed(point))) << point_name(point);
    }
    EXPECT_TRUE(same_bits(live.logits(), pass.logits()));
  }
}

// The rows of a text do not depend on those beside it, to the bit.
TEST_P(RecordedBatch, KeepsATextFromOthers) {
  std::vector<Texts> others = texts_;
  others.pop_back();
  std::swap(others.front(), others.back());
  const RecordedPass batch(model_, texts_), other(model_, others);
  for (const Point& point : all_points(model_.architecture())) {
    EXPECT_EQ(of_text(batch, point, batch.computed(point), 0),
              of_text(other, point, other.computed(point), 1))
        << point_name(point);
  }
}

TEST_P(RecordedBatch, ShowsTilesAndPlanesOfEachText) {
  const RecordedPass batch(model_, texts_, editor());
  for (const AttentionSite site : sites_of(model_.architecture())) {
    const Point pattern = pattern_point(site, 0);
    const Tensor<float> all = batch.computed(pattern);
    const StackSite read = site.kind == AttentionKind::cross ? StackSite::encoder : site.stack;
    for (std::int64_t b = 0; b < std::ssize(texts_); ++b) {
      const std::int64_t queries = batch.sequences(site.stack)[b].length();
      const std::int64_t keys = batch.sequences(read)[b].length();
      const Tensor<float> edited = batch.plane(pattern, 2, b);
      ASSERT_EQ(edited.shape(), (Shape{queries, keys}));
      EXPECT_EQ(elements(edited),
                elements(all.view()[b][2].slice(0, 0, queries).slice(1, 0, keys)));
      Tensor<float> tile(Shape{queries, keys});
      batch.attention_tile(pattern, {.batch = b, .head = 3, .query_end = queries, .key_end = keys},
                           tile);
      EXPECT_EQ(elements(tile), elements(all.view()[b][3].slice(0, 0, queries).slice(1, 0, keys)));
      for (std::int64_t s = keys; s < all.shape()[3]; ++s) EXPECT_EQ(all.view()(b, 3, 0, s), 0);
    }
    const Tensor<float> scores = batch.computed(scores_of(pattern));
    const std::int64_t longest = scores.shape()[3];
    for (std::int64_t b = 0; b < std::ssize(texts_); ++b) {
      if (batch.sequences(read)[b].length() == longest) continue;
      EXPECT_EQ(scores.view()(b, 0, 0, longest - 1), -std::numeric_limits<float>::infinity());
    }
  }
}

// Each text has the gradient of its own target.
TEST_P(RecordedBatch, HasTheGradientsOfEachText) {
  if (!model_.specification().is_causal()) return;
  std::vector<Texts> texts = texts_;
  for (Texts& each : texts) each.target.push_back(6);  // a token to predict
  for (const GradientTarget& target :
       {GradientTarget{}, GradientTarget{.logits = {{.position = -1, .token = 33},
                                                    {.position = 0, .token = 4, .weight = -2}}}}) {
    const RecordedPass batch(model_, texts);
    testing::RecordingProbe of_batch;
    of_batch.gradients_wanted = true;
    batch.backward(target, of_batch);
    for (std::int64_t b = 0; b < std::ssize(texts); ++b) {
      testing::RecordingProbe alone;
      alone.gradients_wanted = true;
      RecordedPass(model_, texts[static_cast<std::size_t>(b)]).backward(target, alone);
      ASSERT_FALSE(alone.gradients.empty());
      ASSERT_EQ(alone.gradients.size(), of_batch.gradients.size());
      double largest = 0;
      for (const auto& [name, own] : alone.gradients) {
        const testing::RecordingProbe::Record& all = of_batch.gradients.at(name);
        const Point point = *point_from_name(name);
        const std::vector<float> found = of_text(batch, point, {all.values.data(), all.shape}, b);
        double norm = 0;
        for (const float value : own.values) norm += double{value} * value;
        largest = std::max(largest, norm);
        if (norm < 1e-8) continue;  // what a pattern of one key, or a masked key, cannot change
        // The norm of what attention gives takes away what the scale before it changes, but for
        // the scores: little is left of sums of large terms.
        const bool is_taken_away = point.kind == PointKind::norm_1_scale &&
                                   model_.specification(point.site).has_output_norms();
        EXPECT_LE(relative_error(found, own.values),
                  is_taken_away ? 5e-3 : tolerance_of_gradient(point.kind))
            << name << " of " << b;
      }
      EXPECT_GT(largest, 1e-3);
    }
  }
}

// Statistics of a batch are those of its texts one after the other.
TEST_P(RecordedBatch, ScansTheHeadsOfEveryText) {
  const RecordedPass batch(model_, texts_, editor());
  const HeadScan together = scan_heads(batch);
  HeadScan each(model_.architecture(), {.editor = batch.edited_by()});
  for (const Texts& texts : texts_) {
    const RecordedPass pass(model_, texts, editor());
    const auto view = [](const std::vector<std::int32_t>& tokens) {
      return View<const std::int32_t>{tokens.data(), {1, std::ssize(tokens)}};
    };
    each.expect(view(texts.target),
                texts.source.empty() ? View<const std::int32_t>{} : view(texts.source));
    pass.replay(each);
  }
  for (const AttentionSite site : sites_of(model_.architecture())) {
    for (std::int64_t head = 0; head < 4; ++head) {
      const HeadStatistics found = together.statistics(1, head, site);
      const HeadStatistics expected = each.statistics(1, head, site);
      EXPECT_NEAR(found.evenness, expected.evenness, 1e-5);
      EXPECT_NEAR(found.largest, expected.largest, 1e-5);
      EXPECT_NEAR(found.duplicate, expected.duplicate, 1e-5);
      EXPECT_NEAR(found.distance, expected.distance, 1e-4);
    }
  }
}

// What a probe is told of the rows.
TEST_P(RecordedBatch, TellsProbesWhoseRowsTheyAre) {
  class Told final : public Probe {
   public:
    void begin_pass(StackSite site, const Sequences& sequences) override {
      lengths.emplace_back();
      sites.push_back(site);
      for (const Sequence each : sequences) lengths.back().push_back(each.length());
    }
    bool wants(const Point&) const override { return false; }
    void observe(const Point&, View<const float>) override {}
    bool wants_attention_at(const Point& pattern) const override { return pattern.layer == 0; }
    void observe_attention_at(const Point& pattern, const kernels::AttentionInput<float>& input,
                              View<const float>, std::int64_t text) override {
      if (pattern.kind != PointKind::pattern) return;
      EXPECT_EQ(input.query.extent(1), lengths.back()[static_cast<std::size_t>(text)]);
      ++attended;
    }
    std::vector<StackSite> sites;
    std::vector<std::vector<std::int64_t>> lengths;
    int attended = 0;
  };
  Told live, replayed;
  const RecordedPass pass(model_, texts_, nullptr, {.observer = &live});
  pass.replay(replayed);
  std::vector<std::int64_t> sources, targets;
  for (const Texts& texts : texts_) {
    sources.push_back(std::ssize(texts.source));
    targets.push_back(std::ssize(texts.target));
  }
  const bool has_two = model_.architecture().is_encoder_decoder();
  for (const Told* told : {&live, &replayed}) {
    ASSERT_EQ(told->lengths.size(), has_two ? 2U : 1U);
    EXPECT_EQ(told->sites.back(), last());
    EXPECT_EQ(told->lengths.back(), targets);
    if (has_two) {
      EXPECT_EQ(told->lengths.front(), sources);
    }
    EXPECT_EQ(told->attended, has_two ? 6 : 3);
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, RecordedBatch, ::testing::ValuesIn(batch_cases()),
                         [](const auto& each) {
                           std::string name;
                           for (const char c : each.param.name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
                           }
                           return name;
                         });

// Every sequence of a batch of one length has the values that it has alone.
TEST(RecordedPass, KeepsABatch) {
  const Transformer model = testing::random_transformer(testing::small_config());
  std::vector<Texts> texts;
  for (std::uint64_t b = 0; b < 3; ++b)
    texts.push_back({.target = testing::random_tokens(9, 61, b)});
  const RecordedPass batch(model, texts);
  EXPECT_EQ(batch.positions(), 9);
  EXPECT_FALSE(batch.sequences().is_ragged());
  for (std::int64_t b = 0; b < 3; ++b) {
    const RecordedPass alone(model, texts[static_cast<std::size_t>(b)]);
    for (const Point& point : all_points(model.architecture())) {
      const Tensor<float> all = batch.computed(point), own = alone.computed(point);
      EXPECT_LE(relative_error(all.view()[b].span(), own.view()[0].span()), 1e-6)
          << point_name(point);
    }
  }
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { RecordedPass(model, std::span<const Texts>()); },
      "at least one text");
}

// Many texts take several passes, and each is shown.
TEST(RecordedPass, ObservesManyTextsInSeveralPasses) {
  const Transformer model = testing::toy_transformer(testing::toy_stack(600));
  const std::vector<Texts> texts{{.target = testing::random_tokens(600, 61, 1)},
                                 {.target = testing::random_tokens(500, 61, 2)},
                                 {.target = testing::random_tokens(3, 61, 3)}};
  class Counting final : public Probe {
   public:
    bool wants(const Point& point) const override { return point.kind == PointKind::residual_mid; }
    void observe(const Point& point, View<const float> values) override {
      if (point.layer == 0) rows.push_back(values.extent(0) * values.extent(1));
    }
    std::vector<std::int64_t> rows;
  } probe;
  observe_passes(model, texts, probe);
  EXPECT_EQ(probe.rows, (std::vector<std::int64_t>{600, 503}));
}

}  // namespace
}  // namespace heed
