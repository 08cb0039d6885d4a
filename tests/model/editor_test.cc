#include "model/editor.h"
#include "formats/config_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "generate/random_transformer.h"
#include "model/cache.h"
#include "model/comparison.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

using testing::RecordingProbe;

// Calls `change` for every element of the points it is asked to edit.
class ElementEditor final : public Editor {
 public:
  using Change = std::function<float(const EditedPoint&, std::int64_t position, float)>;

  ElementEditor(std::vector<Point> points, Change change)
      : points_(std::move(points)), change_(std::move(change)) {}

  bool edits(const Point& point) const override { return std::ranges::count(points_, point) > 0; }
  void edit(const EditedPoint& edited, View<float> values) override {
    const int position_dimension = edited.head < 0 ? 1 : 2;
    for (std::int64_t b = 0; b < values.extent(0); ++b) {
      for (std::int64_t t = 0; t < values.extent(position_dimension); ++t) {
        change(edited, edited.position(b, t), edited.head < 0 ? values[b][t] : values[b][0][t]);
      }
    }
  }

 private:
  void change(const EditedPoint& edited, std::int64_t position, View<float> values) {
    if (values.rank() == 0) {
      *values.data() = change_(edited, position, *values.data());
      return;
    }
    for (std::int64_t i = 0; i < values.extent(0); ++i) change(edited, position, values[i]);
  }

  std::vector<Point> points_;
  Change change_;
};

ElementEditor::Change scaled_by(float factor) {
  return [factor](const EditedPoint&, std::int64_t, float value) { return factor * value; };
}

// Logits (B·T, V) of tokens (B, T).
Tensor<float> logits_of(const Transformer& transformer, View<const std::int32_t> tokens,
                        Editor* editor, Probe* probe = nullptr) {
  const std::int64_t batch = tokens.extent(0);
  const std::int64_t positions = tokens.extent(1);
  const StackActivations activations(transformer.specification(), batch, positions,
                                     Keep::one_block);
  transformer.forward(tokens, {.sequences = {batch, positions}, .probe = probe, .editor = editor},
                      activations);
  Tensor<float> logits(Shape{batch * positions, transformer.specification().vocabulary_size});
  transformer.project(activations.final_norm(), logits);
  return logits;
}

struct Example {
  Transformer transformer = testing::random_transformer(testing::small_config());
  std::vector<std::int32_t> tokens = testing::random_tokens(2 * 9, 61, 3);

  View<const std::int32_t> view() const { return {tokens.data(), {2, 9}}; }
};

TEST(Editor, ThatEditsNothingChangesNoBit) {
  const Example example;
  ElementEditor editor({}, scaled_by(0));
  RecordingProbe plain;
  RecordingProbe edited;
  const auto before = logits_of(example.transformer, example.view(), nullptr, &plain);
  const auto after = logits_of(example.transformer, example.view(), &editor, &edited);
  EXPECT_TRUE(std::ranges::equal(before.span(), after.span()));
  EXPECT_EQ(plain.order, edited.order);
  EXPECT_EQ(plain.records, edited.records);
}

// The points that the fast path does not hold are computed again by other sums, each right to a few
// units in the last place of f32 (6e-8), over four blocks of the stream.
TEST(Editor, ThatPutsBackWhatItSawEverywhereChangesRoundingOnly) {
  const Example example;
  std::vector<Point> points = all_points(3);
  std::erase(points, Point{PointKind::logits});
  ElementEditor editor(points, scaled_by(1));
  const auto before = logits_of(example.transformer, example.view(), nullptr);
  const auto after = logits_of(example.transformer, example.view(), &editor);
  EXPECT_LT(testing::relative_error(after.span(), before.span()), 1e-5);
}

// The tolerance is that of unchanged passes in golden_test.cc.
TEST(Editor, ChangesEveryPointAsPyTorchDoes) {
  const auto folder = std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden";
  const auto model = SafetensorsFile::open(folder / "gpt_tied.safetensors");
  const auto golden = SafetensorsFile::open(folder / "edits.safetensors");
  const auto floats = [](const SafetensorsFile& file, const std::string& name) {
    Tensor<float> values(file.find(name)->shape);
    read_as_f32(*file.find(name), values);
    return values;
  };
  Transformer transformer({.stacks = {stack_config_from_json(
                               parse_json(model.metadata().at("config"), "golden"), "golden")}});
  for (const Parameter& parameter : transformer.parameters().list()) {
    const std::string name = testing::gpt2_name(parameter.id);
    const TensorEntry& from = *model.find("parameter." + name);
    const View<float> to = transformer.parameters().tensor(parameter.id);
    from.shape == to.shape() && !name.ends_with("c_proj.weight") &&
            !name.ends_with("c_attn.weight") && !name.ends_with("c_fc.weight")
        ? read_as_f32(from, to)
        : read_transposed_as_f32(from, to);
  }
  const TensorEntry& stored = *model.find("tokens");
  const View<const std::int32_t> tokens(reinterpret_cast<const std::int32_t*>(stored.bytes.data()),
                                        stored.shape);
  int compared = 0;
  for (const Point& point : all_points(transformer.specification().layers)) {
    for (const auto& [kind, factor] : {std::pair{".scale", 0.7F}, std::pair{".zero", 0.0F}}) {
      const std::string name = point_name(point) + kind;
      if (golden.find(name) == nullptr) continue;
      ElementEditor editor({point}, scaled_by(factor));
      const auto logits = logits_of(transformer, tokens, &editor);
      EXPECT_LT(testing::relative_error(logits.span(), floats(golden, name).span()), 1e-5) << name;
      ++compared;
    }
  }
  // Every point but the logits scaled, all but scales and scores of those set to zero.
  EXPECT_EQ(compared, 28 + 24);
}

TEST(Editor, ShowsProbesWhatItMade) {
  const Example example;
  for (const PointKind kind :
       {PointKind::pattern, PointKind::scores, PointKind::norm_1_scale,
        PointKind::norm_2_normalized, PointKind::query, PointKind::residual_mid}) {
    const Point point{kind, 1};
    RecordingProbe plain;
    RecordingProbe edited;
    ElementEditor editor({point}, scaled_by(0.5F));
    logits_of(example.transformer, example.view(), nullptr, &plain);
    logits_of(example.transformer, example.view(), &editor, &edited);
    auto expected = plain.records.at(point_name(point)).values;
    for (float& value : expected) value *= 0.5F;
    EXPECT_LT(testing::relative_error(edited.records.at(point_name(point)).values, expected), 1e-6)
        << point_name(point);
  }
}

// Changes from position 5 on, at points of each kind.
std::vector<Point> points_of_each_kind() {
  return {{PointKind::embedding},   {PointKind::query, 0},        {PointKind::key, 1},
          {PointKind::value, 2},    {PointKind::pattern, 1},      {PointKind::scores, 2},
          {PointKind::final_scale}, {PointKind::norm_1_scale, 2}, {PointKind::neurons_post, 0}};
}
float halved_from_5(const EditedPoint&, std::int64_t position, float value) {
  return position >= 5 ? 0.5F * value : value;
}

// Cached decoding sums in another order than one pass: 1e-5, as where nothing is edited.
TEST(Editor, ChangesCachedDecodingAsOnePass) {
  const Example example;
  ElementEditor editor(points_of_each_kind(), halved_from_5);
  const auto whole = logits_of(example.transformer, example.view(), &editor);
  KeyValueCache cache(example.transformer.specification(), 2, 9);
  for (const auto& [begin, end] : {std::pair{0, 4}, {4, 6}, {6, 7}, {7, 8}, {8, 9}}) {
    const std::int64_t count = end - begin;
    std::vector<std::int32_t> tokens;
    for (int b = 0; b < 2; ++b) {
      for (int t = begin; t < end; ++t) tokens.push_back(example.view()(b, t));
    }
    const StackActivations activations(example.transformer.specification(), 2, count,
                                       Keep::one_block);
    example.transformer.forward(View<const std::int32_t>(tokens.data(), {2, count}),
                                {.sequences = Sequences::next_of(cache, count), .editor = &editor},
                                activations);
    Tensor<float> logits(Shape{2 * count, 61});
    example.transformer.project(activations.final_norm(), logits);
    for (int b = 0; b < 2; ++b) {
      EXPECT_LT(testing::relative_error(logits.span().subspan(b * count * 61, count * 61),
                                        whole.span().subspan((b * 9 + begin) * 61, count * 61)),
                1e-5);
    }
  }
}

TEST(Editor, ChangesABatchOfDifferentLengthsAsEachAlone) {
  const Example example;
  ElementEditor editor(points_of_each_kind(), halved_from_5);
  // Sequences that have read 7 and 4 tokens go on with one more.
  const auto config = example.transformer.specification();
  KeyValueCache longer(config, 1, 9);
  KeyValueCache shorter(config, 1, 9);
  const auto read = [&](KeyValueCache& cache, std::int64_t b, std::int64_t count) {
    const StackActivations activations(config, 1, count, Keep::one_block);
    example.transformer.forward(
        View<const std::int32_t>(&example.view()(b, cache.length()), {1, count}),
        {.sequences = Sequences::next_of(cache, count), .editor = &editor}, activations);
    Tensor<float> logits(Shape{count, 61});
    example.transformer.project(activations.final_norm(), logits);
    return logits;
  };
  read(longer, 0, 7);
  read(shorter, 1, 5);
  const std::int32_t next[] = {example.view()(0, 7), example.view()(1, 5)};
  KeyValueCache* const caches[] = {&longer, &shorter};
  const StackActivations activations(config, 2, 1, Keep::one_block);
  example.transformer.forward(View<const std::int32_t>(next, {2, 1}),
                              {.sequences = Sequences::next_of(caches), .editor = &editor},
                              activations);
  Tensor<float> together(Shape{2, 61});
  example.transformer.project(activations.final_norm(), together);
  longer.truncate(7);
  shorter.truncate(5);
  const auto alone_0 = read(longer, 0, 1);
  const auto alone_1 = read(shorter, 1, 1);
  EXPECT_LT(testing::relative_error(together.span().first(61), alone_0.span()), 1e-5);
  EXPECT_LT(testing::relative_error(together.span().last(61), alone_1.span()), 1e-5);
}

}  // namespace
}  // namespace heed
