// Patches and interventions in toy models of every family, against one whole pass for each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/expect_error.h"
#include "microscope/families.h"
#include "microscope/intervene/intervention.h"
#include "microscope/intervene/intervention_text.h"
#include "microscope/patch/patch.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

// Grouped, rotated, gated with RMS norms; the same with windows, norms of queries and keys, and a
// parallel residual; and GPT-NeoX's.
class FamilyPatch : public ::testing::TestWithParam<testing::ToyFamily> {
 protected:
  static constexpr std::int64_t positions = 9;

  const StackSpecification& stack() const { return transformer.specification(); }

  std::vector<float> logits(const std::vector<std::int32_t>& tokens, Editor* editor) const {
    const StackActivations activations(stack(), 1, positions, Keep::one_block);
    transformer.forward({tokens.data(), {1, positions}},
                        {.sequences = {1, positions}, .editor = editor}, activations);
    std::vector<float> values(static_cast<std::size_t>(stack().vocabulary_size));
    transformer.project(activations.final_norm().slice(0, positions - 1, positions),
                        View<float>(values.data(), {1, stack().vocabulary_size}), positions);
    return values;
  }
  double metric(Editor* editor) const {
    return patch_metric(request.metric, logits(request.corrupted.target, editor), {});
  }
  // The corrupted prompt with a point of the clean one.
  double patched(const Point& point, Selection where) const {
    Interventions editor(stack(), {{point, std::move(where),
                                    ReplaceWith{values_at(transformer, point, request.clean)}}});
    return metric(&editor);
  }

  Transformer transformer = testing::toy_transformer(GetParam().stack);
  PatchRequest request{
      .clean = {.target = testing::random_tokens(positions, GetParam().stack.vocabulary_size, 3)},
      .corrupted = {.target =
                        testing::random_tokens(positions, GetParam().stack.vocabulary_size, 4)},
      .metric = {.answer = 7, .wrong = 11}};
};

INSTANTIATE_TEST_SUITE_P(Families, FamilyPatch, ::testing::ValuesIn(testing::every_toy_family(16)),
                         [](const auto& tested) { return tested.param.name; });

// Sums in another order than in a whole pass, in f32: 1e-5 of logits of a few units.
TEST_P(FamilyPatch, CellsEqualOneForwardEach) {
  for (const std::string& name : patch_grid_names()) {
    request.grid = patch_grid_from_name(name);
    const PatchGridKind& kind = patch_grid_kind(request.grid);
    if (kind.is_edge()) continue;
    if (!has_point(stack(), kind.point)) {
      testing::expect_error(
          ErrorCode::unsupported, [&] { patch_sweep(transformer, request); },
          "no blocks.0.hook_resid_mid");
      continue;
    }
    const PatchResult found = patch_sweep(transformer, request);
    const std::int64_t heads = patched_heads(stack().block.attention, kind);
    const bool by_position = kind.columns == PatchColumns::heads_by_position;
    ASSERT_EQ(found.columns, kind.columns == PatchColumns::positions ? positions
                             : by_position                           ? heads * positions
                                                                     : heads);
    const double scale = std::abs(found.clean) + std::abs(found.corrupted);
    for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
      for (std::int64_t column = 0; column < found.columns; ++column) {
        Selection where;
        if (kind.columns != PatchColumns::heads) {
          where.first_position = where.last_position = column % positions;
        }
        if (kind.columns != PatchColumns::positions) {
          where.heads = {by_position ? column / positions : column};
        }
        EXPECT_NEAR(found.value(layer, column), patched({kind.point, layer}, where), 1e-5 * scale)
            << name << " " << layer << " " << column;
      }
    }
    if (stack().has_output_norms() || stack().logit_cap > 0) continue;  // refused
    request.method = PatchMethod::attribution;
    EXPECT_EQ(patch_sweep(transformer, request).columns, found.columns) << name;
    request.method = PatchMethod::exact;
  }
}

TEST_P(FamilyPatch, EdgesAreThoseThatTheMaskLeaves) {
  request.layer = stack().layers - 1;
  request.head = 3;
  const std::int64_t window = stack().block.attention.window(request.layer);
  for (const auto grid : {PatchGrid::edge_cut, PatchGrid::edge_cut_renormalised}) {
    request.grid = grid;
    const PatchResult found = patch_sweep(transformer, request);
    const double scale = std::abs(found.clean) + std::abs(found.corrupted);
    for (std::int64_t t = 0; t < positions; ++t) {
      for (std::int64_t s = 0; s < positions; ++s) {
        const CutEdges cut{
            {{t, s}},
            grid == PatchGrid::edge_cut ? CutEdges::Rest::kept : CutEdges::Rest::renormalised};
        const auto editor = [&] {
          return Interventions(stack(),
                               {{{PointKind::pattern, request.layer}, {.heads = {3}}, cut}});
        };
        if (s > t || (window > 0 && s <= t - window)) {
          EXPECT_TRUE(std::isnan(found.value(t, s)));
          testing::expect_error(ErrorCode::invalid_argument, editor, "no edge");
          continue;
        }
        Interventions cutting = editor();
        EXPECT_NEAR(found.value(t, s), metric(&cutting), 1e-5 * scale) << t << " " << s;
      }
    }
  }
}

// An ablated plane is zero where it is visible, and masked as before elsewhere.
TEST_P(FamilyPatch, PlanesKeepTheirMasks) {
  const std::int64_t layer = stack().layers - 1;
  for (const PointKind kind : {PointKind::scores, PointKind::pattern}) {
    const Tensor<float> before = values_at(transformer, {kind, layer}, request.clean);
    Interventions zero(stack(), {{{kind, layer}, {}, SetZero{}}});
    Capture after({Point{kind, layer}});
    const StackActivations activations(stack(), 1, positions, Keep::one_block);
    transformer.forward({request.clean.target.data(), {1, positions}},
                        {.sequences = {1, positions}, .probe = &after, .editor = &zero},
                        activations);
    for (std::int64_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after.at({kind, layer})[i], std::isinf(before[i]) ? before[i] : 0.0F);
    }
  }
}

TEST_P(FamilyPatch, RefusesPointsThatTheModelLacks) {
  StackSpecification all = testing::toy_stack(16);
  all.block.attention.query_key_norm = all.block.feed_forward.gated = true;
  std::size_t lacking = 0;
  for (const Point& point : all_points(all)) {
    const std::string name = point_name(point);
    if (has_point(stack(), point.kind)) {
      EXPECT_EQ(points_named(name, stack()), std::vector{point});
      continue;
    }
    ++lacking;
    const auto refused = [&](const auto& call) {
      testing::expect_error(ErrorCode::unsupported, call, name);
    };
    refused([&] { points_named(name, stack()); });
    refused([&] { parse_points({.stacks = {stack()}}, name); });
    refused([&] { Interventions(stack(), {{point, {}, SetZero{}}}); });
    refused([&] { values_at(transformer, point, request.clean); });
    refused([&] { trace_prompt(transformer, request.clean.target, {.points = {name}}); });
  }
  EXPECT_GE(lacking, 1U);
}

// Names are those of query heads, also of the keys and values that several of them share.
TEST_P(FamilyPatch, KeysAreNamedByTheHeadsThatReadThem) {
  const std::int64_t shared = stack().key_value_heads(), heads = stack().heads();
  for (const std::string suffix : {".k", ".v", ".k_input", ".v_input"}) {
    for (std::int64_t head = 0; head < heads; ++head) {
      EXPECT_EQ(parse_points({.stacks = {stack()}}, fmt::format("L1H{}{}", head, suffix))
                    .front()
                    .where.heads,
                std::vector{head * shared / heads});
    }
    testing::expect_error(
        ErrorCode::invalid_argument,
        [&] { parse_points({.stacks = {stack()}}, fmt::format("L1H{}{}", heads, suffix)); },
        fmt::format("heads 0 to {}", heads - 1));
  }
  EXPECT_EQ(parse_points({.stacks = {stack()}}, fmt::format("L1H{}.q", heads - 1)).size(), 1U);

  const Point key{PointKind::key, 1};
  const Trace traced = trace_prompt(transformer, request.clean.target,
                                    {.points = {"q1", "k1"}, .heads = {heads - 2, heads - 1}});
  const TracedArray& query_rows = traced.at("blocks.1.attn.hook_q");
  const TracedArray& key_rows = traced.at("blocks.1.attn.hook_k");
  const std::int64_t of_keys = shared == heads ? 2 : 1;  // the last two heads share a key
  EXPECT_EQ(query_rows.shape, (std::vector<std::int64_t>{1, positions, 2, stack().head_size()}));
  EXPECT_EQ(key_rows.shape,
            (std::vector<std::int64_t>{1, positions, of_keys, stack().head_size()}));
  const Tensor<float> whole = values_at(transformer, key, request.clean);
  EXPECT_EQ(key_rows.values.back(), whole[whole.size() - 1]);

  const std::vector<float> mean = mean_row(transformer, key, std::vector<Texts>{request.clean});
  EXPECT_EQ(std::ssize(mean), shared * stack().head_size());
  Interventions set(stack(), {{key, {.heads = {shared - 1}}, SetRow{mean}}});
  EXPECT_NE(metric(&set), metric(nullptr));
  testing::expect_error(
      ErrorCode::invalid_argument,
      [&] {
        Interventions(stack(), {{key, {.heads = {shared}}, SetZero{}}});
      },
      fmt::format("heads 0 to {}", shared - 1));
}

// Zero keys or queries, as attention reads them, score zero everywhere: the pattern is uniform.
TEST_P(FamilyPatch, RotatedKeysCanBeEdited) {
  const bool changes = stack().block.attention.changes_query_and_key();
  const PointKind kind = changes ? PointKind::rotated_key : PointKind::key;
  Interventions zero(stack(), {{{kind, 0}, {}, SetZero{}}});
  Capture capture({Point{PointKind::pattern, 0}});
  const StackActivations activations(stack(), 1, positions, Keep::one_block);
  transformer.forward({request.clean.target.data(), {1, positions}},
                      {.sequences = {1, positions}, .probe = &capture, .editor = &zero},
                      activations);
  const View<const float> pattern = capture.at({PointKind::pattern, 0}).view()[0];
  const std::int64_t window = stack().block.attention.window(0);
  const std::int64_t visible = window > 0 ? std::min(window, positions) : positions;
  for (std::int64_t head = 0; head < stack().heads(); ++head) {
    EXPECT_NEAR(pattern(head, positions - 1, positions - 1), 1.0 / static_cast<double>(visible),
                1e-6);
  }
}

}  // namespace
}  // namespace heed
