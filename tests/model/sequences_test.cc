// Passes over lists of sequences: what each computes is what it computes alone.
#include "model/sequences.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/expect_error.h"
#include "kernels/elements.h"
#include "model/cache.h"
#include "model/comparison.h"
#include "model/transformer.h"

namespace heed {
namespace {

constexpr std::int64_t width = 16, text_context = 12;

Architecture toy(PositionKind kind) {
  StackSpecification stack = make_gpt_config(2, 2, width, text_context, 40);
  stack.initial_deviation = 0.4F;  // patterns far from uniform
  stack.block.attention.positions = kind;
  return {.stacks = {stack}};
}

Transformer initialised(PositionKind kind) {
  Transformer model(toy(kind));
  model.parameters().initialize(5);
  return model;
}

const std::vector<std::int32_t> some_text{3, 9, 27, 1, 5, 12, 12, 8, 30, 2, 17};
const std::vector<std::int64_t> text_starts{0, 4, 5, 11};  // lengths 4, 1 and 6

// (N, C): the end of a pass.
Tensor<float> end_of(const Transformer& model, std::span<const std::int32_t> read, Pass pass) {
  const std::int64_t rows = pass.rows();
  const StackActivations activations(model.specification(), 1, rows, Keep::one_block);
  stack_forward(model.stack(), {read.data(), Shape{rows}}, pass, activations);
  Tensor<float> end(activations.final_norm().shape());
  kernels::copy(activations.final_norm(), end);
  return end;
}

// Each sequence of the list by itself, one below the other.
Tensor<float> end_of_each(const Transformer& model, Editor* editor) {
  Tensor<float> all(Shape{std::ssize(some_text), width});
  for (std::size_t b = 0; b + 1 < text_starts.size(); ++b) {
    const std::int64_t begin = text_starts[b], end = text_starts[b + 1];
    const std::int64_t own_starts[] = {0, end - begin};
    const Tensor<float> own =
        end_of(model, std::span(some_text).subspan(static_cast<std::size_t>(begin)),
               {.sequences = Sequences::of_lengths(own_starts), .editor = editor});
    kernels::copy(own, all.view().slice(0, begin, end));
  }
  return all;
}

TEST(Sequences, SayWhichRowsAndPositionsTheyHave) {
  const Sequences alike(2, 3);
  EXPECT_EQ(alike.rows(), 6);
  EXPECT_EQ(alike.row_positions(), (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(alike.view_batch(), 2);
  EXPECT_EQ(alike.view_positions(), 3);
  EXPECT_TRUE(alike.attend_together());

  const Sequences ragged = Sequences::of_lengths(text_starts);
  EXPECT_EQ(ragged.count(), 3);
  EXPECT_EQ(ragged.rows(), 11);
  EXPECT_EQ(ragged.view_batch(), 1);
  EXPECT_EQ(ragged.view_positions(), 11);
  EXPECT_EQ(ragged.positions_end(), 6);
  EXPECT_FALSE(ragged.attend_together());
  const std::vector<std::int64_t> expected{0, 1, 2, 3, 0, 0, 1, 2, 3, 4, 5};
  EXPECT_EQ(ragged.row_positions(), expected);
  for (std::int64_t row = 0; row < 11; ++row) {
    EXPECT_EQ(ragged.position_of_row(row), expected[static_cast<std::size_t>(row)]);
  }

  const std::int64_t firsts[] = {4, 1};
  const Sequences chunks = Sequences::from_positions(firsts, 2);
  EXPECT_EQ(chunks.row_positions(), (std::vector<std::int64_t>{4, 5, 1, 2}));
  EXPECT_EQ(chunks.positions_end(), 6);

  KeyValueCache one(toy(PositionKind::learned).decoder(), 1, text_context);
  KeyValueCache two(toy(PositionKind::learned).decoder(), 1, text_context);
  one.advance(5);
  KeyValueCache* const caches[] = {&one, &two};
  const Sequences steps = Sequences::next_of(caches);
  EXPECT_EQ(steps.row_positions(), (std::vector<std::int64_t>{5, 0}));
  EXPECT_FALSE(steps.attend_together());
  steps.advance_caches();
  EXPECT_EQ(one.length(), 6);
  EXPECT_EQ(two.length(), 1);

  KeyValueCache beams(toy(PositionKind::learned).decoder(), 3, text_context);
  const Sequences hypotheses = Sequences::next_of(beams);
  EXPECT_EQ(hypotheses.count(), 3);
  EXPECT_TRUE(hypotheses.attend_together());
  hypotheses.advance_caches();
  EXPECT_EQ(beams.length(), 1);
}

TEST(Sequences, OfAnyLengthsAreWhatTheyAreAloneToTheBit) {
  for (const PositionKind kind : {PositionKind::learned, PositionKind::rotary}) {
    const Transformer model = initialised(kind);
    const Tensor<float> together =
        end_of(model, some_text, {.sequences = Sequences::of_lengths(text_starts)});
    EXPECT_TRUE(testing::same_bits(together, end_of_each(model, nullptr)));
  }
}

// Halves what it is given from position 2 on.
class FromPosition2 final : public Editor {
 public:
  explicit FromPosition2(PointKind kind) : kind_(kind) {}

  bool edits(const Point& point) const override { return point.kind == kind_; }
  void edit(const EditedPoint& edited, View<float> values) override {
    const bool of_head = is_plane(edited.point.kind);
    for (std::int64_t b = 0; b < values.extent(0); ++b) {
      for (std::int64_t t = 0; t < values.extent(of_head ? 2 : 1); ++t) {
        if (edited.position(b, t) < 2) continue;
        kernels::scale(of_head ? values[b][0][t] : values[b][t], 0.5F);
        ++edits_;
      }
    }
  }

  std::int64_t take_edits() { return std::exchange(edits_, 0); }

 private:
  PointKind kind_;
  std::int64_t edits_ = 0;
};

TEST(Sequences, OfAnyLengthsAreEditedAtTheirOwnPositions) {
  const Transformer model = initialised(PositionKind::learned);
  const Tensor<float> unedited = end_of_each(model, nullptr);
  for (const PointKind kind : {PointKind::residual_pre, PointKind::embedding, PointKind::position,
                               PointKind::norm_1_scale, PointKind::scores, PointKind::pattern}) {
    FromPosition2 editor(kind);
    const Tensor<float> together = end_of(
        model, some_text, {.sequences = Sequences::of_lengths(text_starts), .editor = &editor});
    const std::int64_t edits = editor.take_edits();
    EXPECT_GT(edits, 0) << static_cast<int>(kind);
    const Tensor<float> alone = end_of_each(model, &editor);
    EXPECT_EQ(editor.take_edits(), edits) << static_cast<int>(kind);
    EXPECT_TRUE(testing::same_bits(together, alone)) << static_cast<int>(kind);
    EXPECT_FALSE(testing::same_bits(together, unedited)) << static_cast<int>(kind);
  }
}

// Steps of three sequences, which have caches of different lengths, and of the same together.
TEST(Sequences, GoOnFromCachesOfTheirOwnAsFromTheWholeText) {
  const Transformer model = initialised(PositionKind::rotary);
  const StackSpecification& stack = model.specification();
  FromPosition2 editor(PointKind::pattern);
  for (Editor* const edit : {static_cast<Editor*>(nullptr), static_cast<Editor*>(&editor)}) {
    const Tensor<float> whole = end_of_each(model, edit);
    for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::int8}) {
      std::vector<KeyValueCache> caches;
      caches.reserve(2);
      std::vector<KeyValueCache*> list;
      std::vector<std::int32_t> last;
      for (const std::int64_t b : {0, 2}) {
        const std::int64_t begin = text_starts[static_cast<std::size_t>(b)];
        const std::int64_t count = text_starts[static_cast<std::size_t>(b) + 1] - begin;
        KeyValueCache& cache = caches.emplace_back(stack, 1, text_context, type);
        list.push_back(&cache);
        const StackActivations activations(stack, 1, count - 1, Keep::one_block);
        model.forward({some_text.data() + begin, {1, count - 1}},
                      {.sequences = Sequences::next_of(cache, count - 1), .editor = edit},
                      activations);
        last.push_back(some_text[static_cast<std::size_t>(begin + count - 1)]);
      }
      const StackActivations activations(stack, 2, 1, Keep::one_block);
      model.forward({last.data(), {2, 1}}, {.sequences = Sequences::next_of(list), .editor = edit},
                    activations);
      // What keys and values lose: 2⁻⁹ of a number in bf16, 1/254 of the largest in int8.
      const double loss = type == CacheType::f32 ? 1e-5 : type == CacheType::bf16 ? 1e-2 : 2e-2;
      EXPECT_LE(testing::relative_error(activations.final_norm()[0].span(), whole.view()[3].span()),
                loss);
      EXPECT_LE(
          testing::relative_error(activations.final_norm()[1].span(), whole.view()[10].span()),
          loss);
    }
  }
}

// What a probe sees of a pass over several sequences of different lengths: all rows as one view,
// and planes of the longest.
TEST(Sequences, OfAnyLengthsShowTheirRowsOneBelowTheOther) {
  const Transformer model = initialised(PositionKind::learned);
  testing::RecordingProbe probe;
  const Tensor<float> end =
      end_of(model, some_text, {.sequences = Sequences::of_lengths(text_starts), .probe = &probe});
  EXPECT_EQ(probe.records.at("hook_pos_embed").shape, (Shape{1, 11, width}));
  EXPECT_EQ(probe.records.at("blocks.1.attn.hook_q").shape, (Shape{1, 11, 2, width / 2}));
  const auto& pattern = probe.records.at("blocks.0.attn.hook_pattern");
  EXPECT_EQ(pattern.shape, (Shape{3, 2, 6, 6}));
  EXPECT_EQ(pattern.values[6 * 6 * 2], 1);      // of the sequence of one position
  EXPECT_EQ(pattern.values[6 * 6 * 2 + 1], 0);  // after its end
  const View<const float> table = model.parameters().stack().position_embedding;
  const std::vector<float>& shown = probe.records.at("hook_pos_embed").values;
  EXPECT_EQ(shown[5 * width], table(0, 0));   // the third sequence begins
  EXPECT_EQ(shown[10 * width], table(5, 0));  // and ends
}

}  // namespace
}  // namespace heed
