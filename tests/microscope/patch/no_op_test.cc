// What changes nothing changes no bit: patches of a prompt with itself, edits that leave values as
// they are, and variants that equal their base, in every family, weight format and kind of length.
// Products of few rows, blocks and tiles begin at other lengths, and attention in bf16 at 64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/instruction_sets.h"
#include "microscope/families.h"
#include "microscope/intervene/intervention.h"
#include "microscope/patch/patch_cells.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "microworld/checks/marked_story.h"

namespace heed {
namespace {

using kernels::WeightFormat;

constexpr std::int64_t lengths[] = {9, 32, 63, 64, 100, 200};

struct NoOpCase {
  testing::ToyFamily family;
  WeightFormat format;
  std::string instruction_set{};  // empty: the best
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class NoOp : public ::testing::TestWithParam<NoOpCase> {
 protected:
  NoOp() {
    kernels::use_instruction_set(GetParam().instruction_set);
    transformer_.parameters().prepare(GetParam().format);
  }
  ~NoOp() override { kernels::use_instruction_set(""); }

  const StackSpecification& stack() const { return transformer_.specification(); }
  std::vector<std::int32_t> tokens(std::int64_t count) const {
    return testing::random_tokens(count, stack().vocabulary_size, 3);
  }

  StackActivations kept(const std::vector<std::int32_t>& text) const {
    const auto positions = std::ssize(text);
    StackActivations activations(stack(), 1, positions, Keep::every_block);
    transformer_.forward({text.data(), {1, positions}}, {.sequences = {1, positions}}, activations);
    return activations;
  }

  // Of the last position.
  Tensor<float> logits(View<const float> final_norm) const {
    const std::int64_t positions = final_norm.extent(0);
    Tensor<float> last(Shape{1, stack().vocabulary_size});
    transformer_.project(final_norm.slice(0, positions - 1, positions), last, positions);
    return last;
  }

  // The final norm (T, C) of a pass.
  std::vector<float> final_norm(const std::vector<std::int32_t>& text, Editor* editor,
                                Probe* probe = nullptr) const {
    const auto positions = std::ssize(text);
    const StackActivations activations(stack(), 1, positions, Keep::one_block);
    transformer_.forward({text.data(), {1, positions}},
                         {.sequences = {1, positions}, .probe = probe, .editor = editor},
                         activations);
    const std::span<const float> values = activations.final_norm().span();
    return {values.begin(), values.end()};
  }

  Transformer transformer_ = testing::toy_transformer(GetParam().family.stack);
};

// A variant is the whole pass to the bit, wherever it begins and whichever layer it enters.
TEST_P(NoOp, VariantsAreTheWholePass) {
  for (const std::int64_t positions : lengths) {
    const std::vector<std::int32_t> text = tokens(positions);
    const StackActivations base = kept(text);
    const Tensor<float> expected = logits(base.final_norm());
    for (std::int64_t layer = 0; layer <= stack().layers; ++layer) {
      Variants variants(transformer_, base, {0, 1, positions / 2, positions - 1});
      const View<const float> stream =
          layer < stack().layers ? base.block(layer).residual_pre : base.last_residual();
      for (std::int64_t variant = 0; variant < variants.count(); ++variant) {
        std::ranges::copy(stream.slice(0, variants.first(variant), positions).span(),
                          variants.stream(variant).data());
      }
      const Tensor<float> ended = variants.run(layer);
      for (std::int64_t variant = 0; variant < variants.count(); ++variant) {
        EXPECT_TRUE(same_bits(ended.view()[variant].span(), expected.span()))
            << positions << " positions, layer " << layer << ", variant " << variant;
      }
    }
  }
}

// Patching a prompt with itself: some cells of every grid, beside others and alone.
TEST_P(NoOp, PatchesOfAPromptWithItself) {
  for (const std::int64_t positions : lengths) {
    PatchRequest request{.clean = {.target = tokens(positions)},
                         .corrupted = {.target = tokens(positions)}};
    request.layer = stack().layers - 1;
    request.head = 1;
    for (const std::string& name : patch_grid_names()) {
      request.grid = patch_grid_from_name(name);
      const PatchGridKind& kind = patch_grid_kind(request.grid);
      // Cutting an edge changes a pass; replacing it by itself does not.
      if (kind.is_edge() && request.grid != PatchGrid::edge) continue;
      if (!has_point(stack(), kind.point)) continue;
      const std::vector<PatchCell> cells = patch_cells(transformer_.architecture(), request);
      PatchRuns runs(transformer_, request);
      for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
        std::vector<PatchCell> of_layer, chosen;
        std::ranges::copy_if(cells, std::back_inserter(of_layer),
                             [&](const PatchCell& cell) { return cell.layer == layer; });
        if (of_layer.empty()) continue;
        const std::size_t step = std::max<std::size_t>(of_layer.size() / 5, 1);
        for (std::size_t i = 0; i < of_layer.size(); i += step) chosen.push_back(of_layer[i]);
        chosen.push_back(of_layer.back());
        const Tensor<float> together = runs.run(chosen);
        for (std::int64_t i = 0; i < std::ssize(chosen); ++i) {
          EXPECT_TRUE(same_bits(together.view()[i].span(), runs.corrupted_logits()))
              << name << ", " << positions << " positions, layer " << layer << ", cell " << i;
        }
        const Tensor<float> alone = runs.run(std::span(chosen).first(1));
        EXPECT_TRUE(same_bits(alone.view()[0].span(), runs.corrupted_logits()))
            << name << ", " << positions << " positions, layer " << layer << ", alone";
      }
    }
  }
}

// Every point that can be edited, scaled by one, set to itself, and added zero to.
TEST_P(NoOp, EditsThatLeaveValuesAsTheyAre) {
  for (const std::int64_t positions : lengths) {
    const std::vector<std::int32_t> text = tokens(positions);
    std::vector<Point> points = all_points(stack());
    if (positions > 64) {  // the layers do not differ: one of them
      std::erase_if(points, [](const Point& point) { return point.layer == 0; });
    }
    Capture capture(points);
    const std::vector<float> expected = final_norm(text, nullptr, &capture);
    for (const Point& point : points) {
      const bool is_shared = stack().key_value_heads() < stack().heads();
      if (point.kind == PointKind::logits) continue;
      if (point.kind == PointKind::attention_in && is_shared) continue;  // refused: see below
      const auto unchanged = [&](Change change, const char* what) {
        Interventions same(stack(), {{point, {}, std::move(change)}});
        EXPECT_TRUE(same_bits(final_norm(text, &same), expected))
            << point_name(point) << " " << what << ", " << positions << " positions";
      };
      unchanged(ScaleBy{1}, "scaled by one");
      const PointShape shape = point_shape(stack(), point.kind);
      if (!shape.is_plane) {
        unchanged(AddVector{std::vector<float>(static_cast<std::size_t>(shape.width), 0.0F)},
                  "with zero added");
      }
      unchanged(ReplaceWith{capture.take(point)}, "set to itself");
    }
  }
}

TEST_P(NoOp, EdgesThatAreNotThere) {
  const std::vector<std::int32_t> text = tokens(64);
  const std::vector<float> expected = final_norm(text, nullptr);
  const std::vector<EdgeBlock> ahead{{{3, 20}, {20, 40}}};  // masked: keys after their queries
  EdgeCutter cutter(ahead);
  EXPECT_TRUE(same_bits(final_norm(text, &cutter), expected));
}

constexpr WeightFormat formats[] = {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8,
                                    WeightFormat::int4};

std::vector<NoOpCase> every_family() {
  std::vector<NoOpCase> cases;
  for (const testing::ToyFamily& family : testing::every_toy_family(256)) {
    for (const WeightFormat format : formats) cases.push_back({family, format});
  }
  return cases;
}

// The last family has most of what the others have.
std::vector<NoOpCase> every_instruction_set() {
  std::vector<NoOpCase> cases;
  for (const std::string& set : kernels::available_instruction_sets()) {
    if (set == kernels::current_instruction_set()) continue;
    for (const WeightFormat format : formats) {
      cases.push_back({testing::every_toy_family(256).back(), format, set});
    }
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<NoOpCase>& tested) {
  const NoOpCase& of = tested.param;
  return fmt::format("{}_{}{}{}", of.family.name, kernels::weight_format_name(of.format),
                     of.instruction_set.empty() ? "" : "_", of.instruction_set);
}

INSTANTIATE_TEST_SUITE_P(Families, NoOp, ::testing::ValuesIn(every_family()), case_name);
INSTANTIATE_TEST_SUITE_P(InstructionSets, NoOp, ::testing::ValuesIn(every_instruction_set()),
                         case_name);

}  // namespace
}  // namespace heed
