#include "microscope/patch/patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/error.h"
#include "generate/random_transformer.h"
#include "microscope/intervene/intervention.h"
#include "microscope/patch/patch_cells.h"
#include "microscope/traces/capture.h"
#include "support/gpt2_names.h"
#include "support/small_model.h"

namespace heed {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t prompt_positions = 7, model_layers = 3, model_heads = 4;

struct PatchExample {
  Transformer transformer = testing::random_transformer(testing::small_config());
  PatchRequest request{.clean = {.target = testing::random_tokens(prompt_positions, 61, 3)},
                       .corrupted = {.target = testing::random_tokens(prompt_positions, 61, 4)},
                       .metric = {.answer = 7, .wrong = 11}};

  // Final logits of a prompt, and the points of the pass.
  std::vector<float> logits(const std::vector<std::int32_t>& tokens, Editor* editor,
                            Capture* capture = nullptr) const {
    const StackActivations activations(transformer.specification(), 1, prompt_positions,
                                       Keep::one_block);
    transformer.forward({tokens.data(), {1, prompt_positions}},
                        {.sequences = {1, prompt_positions}, .probe = capture, .editor = editor},
                        activations);
    std::vector<float> values(61);
    transformer.project(activations.final_norm().slice(0, prompt_positions - 1, prompt_positions),
                        View<float>(values.data(), {1, 61}));
    return values;
  }
  double metric(const Tensor<float>& values) const {
    return metric(std::vector<float>(values.span().begin(), values.span().end()));
  }
  double metric(const std::vector<float>& values) const {
    return patch_metric(request.metric, values, logits(request.clean.target, nullptr));
  }
  // The corrupted prompt with a point of the clean one, by one whole forward.
  double patched(const Point& point, Selection where) const {
    Capture capture(std::vector<Point>{point});
    logits(request.clean.target, nullptr, &capture);
    Tensor<float> values(capture.at(point).shape());
    std::ranges::copy(capture.at(point).span(), values.data());
    Interventions editor(transformer.specification(),
                         {{point, std::move(where), ReplaceWith{std::move(values)}}});
    return metric(logits(request.corrupted.target, &editor));
  }
};

struct GridCase {
  PatchGrid grid;
  PointKind point;
};

class Grids : public ::testing::TestWithParam<GridCase> {};

// Sums in another order than in a whole pass, in f32: 1e-5 of logits of size one.
constexpr double patch_tolerance = 1e-5;

TEST_P(Grids, EqualOneForwardPerCell) {
  PatchExample example;
  const auto [grid, point] = GetParam();
  const bool every_metric = grid == PatchGrid::residual_pre;
  for (const auto kind : {PatchMetric::Kind::logit_difference, PatchMetric::Kind::probability,
                          PatchMetric::Kind::kl}) {
    if (!every_metric && kind != PatchMetric::Kind::logit_difference) continue;
    example.request.grid = grid;
    example.request.metric.kind = kind;
    const PatchResult result = patch_sweep(example.transformer, example.request);
    ASSERT_EQ(result.rows, model_layers);
    const double scale = std::abs(result.clean) + std::abs(result.corrupted);
    for (std::int64_t layer = 0; layer < model_layers; ++layer) {
      for (std::int64_t column = 0; column < result.columns; ++column) {
        Selection where;
        if (result.columns == model_heads) {
          where.heads = {column};
        } else {
          where.first_position = where.last_position = column % prompt_positions;
          if (result.columns > prompt_positions) where.heads = {column / prompt_positions};
        }
        EXPECT_NEAR(result.value(layer, column), example.patched({point, layer}, where),
                    patch_tolerance * scale)
            << patch_grid_name(grid) << " " << layer << " " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Patch, Grids,
    ::testing::Values(GridCase{PatchGrid::residual_pre, PointKind::residual_pre},
                      GridCase{PatchGrid::residual_mid, PointKind::residual_mid},
                      GridCase{PatchGrid::attention_out, PointKind::attention_out},
                      GridCase{PatchGrid::feed_forward_out, PointKind::feed_forward_out},
                      GridCase{PatchGrid::head_out, PointKind::mixed_values},
                      GridCase{PatchGrid::head_query, PointKind::query},
                      GridCase{PatchGrid::head_key, PointKind::key},
                      GridCase{PatchGrid::head_value, PointKind::value},
                      GridCase{PatchGrid::head_pattern, PointKind::pattern},
                      GridCase{PatchGrid::head_out_by_position, PointKind::mixed_values},
                      GridCase{PatchGrid::head_query_by_position, PointKind::query},
                      GridCase{PatchGrid::head_key_by_position, PointKind::key},
                      GridCase{PatchGrid::head_value_by_position, PointKind::value},
                      GridCase{PatchGrid::head_pattern_by_position, PointKind::pattern}),
    [](const auto& tested) { return std::string(patch_grid_name(tested.param.grid)); });

// Of the last layer, only edges to the last position reach the prediction.
class Edges : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(Edges, AreCutAndReplaced) {
  PatchExample example;
  const std::int64_t layer = example.request.layer = GetParam();
  example.request.head = 2;
  Capture clean(std::vector<Point>{{PointKind::pattern, layer}});
  Capture corrupted(std::vector<Point>{{PointKind::pattern, layer}});
  example.logits(example.request.clean.target, nullptr, &clean);
  example.logits(example.request.corrupted.target, nullptr, &corrupted);
  for (const auto grid : {PatchGrid::edge, PatchGrid::edge_cut, PatchGrid::edge_cut_renormalised}) {
    example.request.grid = grid;
    const PatchResult result = patch_sweep(example.transformer, example.request);
    EXPECT_EQ(result.cells, prompt_positions * (prompt_positions + 1) / 2);
    EXPECT_TRUE(std::isnan(result.value(2, 3)));
    for (const auto& [t, s] : {std::pair{3, 1}, {6, 0}, {6, 5}, {5, 5}}) {
      Change change = CutEdges{
          {{t, s}},
          grid == PatchGrid::edge_cut ? CutEdges::Rest::kept : CutEdges::Rest::renormalised};
      if (grid == PatchGrid::edge) {
        Tensor<float> values(Shape{1, model_heads, prompt_positions, prompt_positions});
        std::ranges::copy(corrupted.at({PointKind::pattern, layer}).span(), values.data());
        values.view()(0, 2, t, s) = clean.at({PointKind::pattern, layer}).view()(0, 2, t, s);
        change = ReplaceWith{std::move(values)};
      }
      std::vector<Intervention> one;
      one.push_back({{PointKind::pattern, layer}, {.heads = {2}}, std::move(change)});
      Interventions editor(example.transformer.specification(), std::move(one));
      EXPECT_NEAR(result.value(t, s),
                  example.metric(example.logits(example.request.corrupted.target, &editor)),
                  patch_tolerance * (std::abs(result.clean) + std::abs(result.corrupted)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Patch, Edges, ::testing::Values(1, model_layers - 1));

// What the prompts share is computed once, and cells of it change nothing; nor do cells of the last
// layer from which nothing reaches the last position.
TEST(PatchSweep, BeginsWhereThePromptsDiffer) {
  for (const std::string& name : patch_grid_names()) {
    PatchExample apart;
    apart.request.grid = patch_grid_from_name(name);
    apart.request.layer = apart.request.head = 1;
    if (patch_grid_kind(apart.request.grid).is_edge()) continue;
    constexpr std::int64_t first = 4;
    std::copy_n(apart.request.clean.target.begin(), first, apart.request.corrupted.target.begin());
    ASSERT_NE(apart.request.clean.target[first], apart.request.corrupted.target[first]);
    const PatchResult result = patch_sweep(apart.transformer, apart.request);
    PatchRuns runs(apart.transformer, apart.request);
    const PointKind point = patch_grid_kind(apart.request.grid).point;
    const bool stays_in_its_row =
        point != PointKind::residual_pre && point != PointKind::key && point != PointKind::value;
    for (const PatchCell& cell : patch_cells(apart.transformer.architecture(), apart.request)) {
      const bool is_shared = cell.position >= 0 && cell.position < first;
      const bool is_unread = cell.position >= 0 && cell.position < prompt_positions - 1 &&
                             cell.layer == model_layers - 1 && stays_in_its_row;
      EXPECT_EQ(runs.changes_nothing(cell), is_shared || is_unread)
          << name << ' ' << cell.row << ' ' << cell.column;
      EXPECT_GE(runs.first_position(cell), runs.changes_nothing(cell) ? 0 : first) << name;
      // Computed from the cell's own position on, where it has one.
      const Tensor<float> logits = runs.run(std::span(&cell, 1));
      EXPECT_NEAR(result.value(cell.row, cell.column), apart.metric(logits), patch_tolerance)
          << name << ' ' << cell.row << ' ' << cell.column;
    }
  }
}

TEST(PatchSweep, DoesNotDependOnTheMemoryItMayTake) {
  PatchExample example;
  const auto wide = patch_sweep(example.transformer, example.request);
  example.request.memory = 1;
  const auto narrow = patch_sweep(example.transformer, example.request);
  for (std::size_t i = 0; i < wide.values.size(); ++i) {
    EXPECT_NEAR(wide.values[i], narrow.values[i], patch_tolerance);
  }
}

TEST(PatchSweep, GoesOnWhereItWasInterrupted) {
  PatchExample example;
  example.request.memory = 1;  // a cell at a time
  const auto whole = patch_sweep(example.transformer, example.request);
  const testing::ScratchDirectory scratch;
  example.request.results = scratch.path() / "cells.json";
  example.request.progress = [&](std::int64_t done, std::int64_t cells) {
    EXPECT_EQ(cells, model_layers * prompt_positions);
    return done < prompt_positions;
  };
  EXPECT_THROW(patch_sweep(example.transformer, example.request), Error);
  example.request.progress = {};
  const auto resumed = patch_sweep(example.transformer, example.request);
  EXPECT_EQ(resumed.resumed_cells, prompt_positions);
  EXPECT_EQ(resumed.values, whole.values);
  EXPECT_EQ(patch_sweep(example.transformer, example.request).resumed_cells,
            model_layers * prompt_positions);
}

TEST(PatchSweep, RefusesResultsThatAreNotItsOwn) {
  PatchExample example;
  const testing::ScratchDirectory scratch;
  example.request.results = scratch.path() / "cells.json";
  patch_sweep(example.transformer, example.request);
  example.request.metric.answer = 8;
  EXPECT_THROW(patch_sweep(example.transformer, example.request), Error);
  example.request.metric.answer = 7;
  example.transformer.parameters().prepare(kernels::WeightFormat::bf16);
  EXPECT_THROW(patch_sweep(example.transformer, example.request), Error);
  for (const char* text : {"", "[]", "{}", R"({"patch": 3, "cells": []})"}) {
    std::ofstream(example.request.results) << text;
    EXPECT_THROW(patch_sweep(example.transformer, example.request), Error) << text;
  }
}

TEST(PatchSweep, RefusesRequestsThatCannotBe) {
  const auto message = [](const std::function<void(PatchRequest&)>& change) -> std::string {
    PatchExample example;
    change(example.request);
    try {
      patch_sweep(example.transformer, example.request);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message([](auto& request) { request.clean.target.pop_back(); }),
              HasSubstr("6 tokens and the corrupted one 7"));
  EXPECT_THAT(message([](auto& request) { request.clean.target = request.corrupted.target = {}; }),
              HasSubstr("no tokens"));
  EXPECT_THAT(message([](auto& request) { request.clean.target[1] = 61; }), HasSubstr("61"));
  EXPECT_THAT(message([](auto& request) { request.metric.answer = -1; }), HasSubstr("answer"));
  EXPECT_THAT(message([](auto& request) { request.metric.wrong = 7; }), HasSubstr("same token"));
  EXPECT_THAT(message([](auto& request) { request.grid = PatchGrid::edge; }),
              HasSubstr("edge grids need a head"));
}

// Two prompts that hardly differ, by a fortieth of an embedding: then the first order is nearly all
// that there is.
TEST(PatchEstimate, IsTheSweepToFirstOrder) {
  PatchExample example;
  const View<float> embedding =
      example.transformer.parameters().tensor(testing::gpt2_parameter("wte.weight"));
  example.request.clean.target = example.request.corrupted.target;
  example.request.clean.target[2] = 59;
  for (std::int64_t c = 0; c < embedding.extent(1); ++c) {
    embedding(59, c) =
        embedding(example.request.corrupted.target[2], c) + 0.002F * static_cast<float>(c % 5 - 2);
  }
  std::size_t grids = 0;
  for (const std::string& name : patch_grid_names()) {
    example.request.grid = patch_grid_from_name(name);
    if (example.request.grid >= PatchGrid::edge) continue;
    example.request.method = PatchMethod::exact;
    const PatchResult exact = patch_sweep(example.transformer, example.request);
    example.request.method = PatchMethod::attribution;
    const PatchResult estimate = patch_sweep(example.transformer, example.request);
    EXPECT_NEAR(estimate.clean, exact.clean, patch_tolerance);
    EXPECT_NEAR(estimate.corrupted, exact.corrupted, patch_tolerance);
    ASSERT_EQ(estimate.values.size(), exact.values.size());
    double largest = 0, off = 0;
    for (std::size_t i = 0; i < exact.values.size(); ++i) {
      largest = std::max(largest, std::abs(exact.values[i] - exact.corrupted));
      off = std::max(off, std::abs(estimate.values[i] - exact.values[i]));
    }
    EXPECT_GT(largest, 20 * patch_tolerance) << name;
    EXPECT_LT(off, 0.2 * largest + patch_tolerance) << name;
    ++grids;
  }
  EXPECT_EQ(grids, 14U);
}

TEST(PatchEstimate, KnowsNeitherEdgesNorOtherMetrics) {
  PatchExample example;
  example.request.method = PatchMethod::attribution;
  example.request.metric.kind = PatchMetric::Kind::kl;
  EXPECT_THROW(patch_sweep(example.transformer, example.request), Error);
  example.request.metric.kind = PatchMetric::Kind::logit_difference;
  example.request.grid = PatchGrid::edge;
  example.request.layer = example.request.head = 0;
  EXPECT_THROW(patch_sweep(example.transformer, example.request), Error);
}

TEST(PatchGrid, HasNames) {
  for (const std::string& name : patch_grid_names()) {
    EXPECT_EQ(patch_grid_name(patch_grid_from_name(name)), name);
  }
  try {
    patch_grid_from_name("resid_per");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'resid_pre'"));
  }
}

}  // namespace
}  // namespace heed
