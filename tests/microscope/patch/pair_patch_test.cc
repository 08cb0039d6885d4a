// Patching between two pairs of a source and a target.
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "microscope/intervene/intervention.h"
#include "microscope/patch/patch.h"
#include "microscope/toy_pairs.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::toy_pair;
using testing::ToyPairShape;

constexpr const char* sites[] = {"encoder", "decoder", "cross"};

// Two sources that differ in one token, and targets that do in another.
class PairPatch : public ::testing::TestWithParam<ToyPairShape> {
 protected:
  PairPatch() {
    request_.clean = request_.corrupted = toy_pair();
    request_.corrupted.source[3] = 17;
    request_.metric = {.answer = 21, .wrong = 9};
  }

  const Architecture& architecture() const { return model_.architecture(); }
  // Of a pass over the corrupted texts with an intervention, or none.
  double metric(std::vector<Intervention> interventions) const {
    const RecordedPass pass(
        model_, request_.corrupted,
        std::make_shared<Interventions>(architecture(), std::move(interventions)));
    const Tensor<float> logits = pass.logits(pass.positions() - 1, pass.positions());
    return patch_metric(request_.metric, logits.span(), logits.span());
  }
  // Grids that the site has; edge grids of the last head.
  bool choose(const char* site, const std::string& grid) {
    request_.site = site;
    request_.grid = patch_grid_from_name(grid);
    request_.layer = request_.head = 1;
    const bool is_of_stack = grid == "resid_pre" || grid == "mlp_out";
    return std::string(site) != "cross" || !is_of_stack;
  }

  Transformer model_ = testing::toy_translator(GetParam());
  PatchRequest request_;
};

INSTANTIATE_TEST_SUITE_P(Shapes, PairPatch, ::testing::ValuesIn(testing::toy_pair_shapes()));

// What the first layer of the encoder reads at the token that differs is all that differs.
TEST_P(PairPatch, TheTokenThatDiffersRestoresEverything) {
  const PatchResult found = patch_sweep(model_, request_);
  ASSERT_EQ(found.rows, 3);  // layers of the encoder
  ASSERT_EQ(found.columns, 7);
  ASSERT_GT(std::abs(found.clean - found.corrupted), 1e-3);
  for (std::int64_t position = 0; position < 7; ++position) {
    EXPECT_NEAR(found.value(0, position), position == 3 ? found.clean : found.corrupted, 1e-5);
  }
  request_.metric = {.kind = PatchMetric::Kind::probability, .answer = 21};
  const PatchResult probability = patch_sweep(model_, request_);
  const RecordedPass clean(model_, request_.clean);
  EXPECT_NEAR(probability.clean, clean.next_probabilities(4)[21], 1e-6);
}

// To the bit: a cell is such a pass.
TEST_P(PairPatch, CellsEqualOnePassEach) {
  request_.corrupted.target[2] = 23;
  std::int64_t compared = 0;
  for (const char* const site : sites) {
    for (const std::string& grid : patch_grid_names()) {
      if (!choose(site, grid)) continue;
      const PatchGridKind& kind = patch_grid_kind(request_.grid);
      if (kind.is_edge()) continue;
      const PatchedSite patched = patched_site(architecture(), request_);
      const PatchResult found = patch_sweep(model_, request_);
      const std::int64_t positions = patched.positions(kind);
      const bool by_position = kind.columns == PatchColumns::heads_by_position;
      ASSERT_EQ(found.columns, kind.columns == PatchColumns::positions ? positions
                               : by_position                           ? 4 * positions
                                                                       : 4);
      ASSERT_EQ(found.rows, architecture().of(patched.site.stack).layers);
      for (std::int64_t layer = 0; layer < found.rows; ++layer) {
        const Point point = patched.point(kind, layer);
        for (std::int64_t column = 0; column < found.columns; ++column) {
          Selection where;
          if (kind.columns != PatchColumns::heads) {
            where.first_position = where.last_position = column % positions;
          }
          if (kind.columns != PatchColumns::positions) {
            where.heads = {by_position ? column / positions : column};
          }
          const ReplaceWith clean(values_at(model_, point, request_.clean));
          EXPECT_EQ(found.value(layer, column), metric({{point, where, clean}}))
              << site << ' ' << grid << ' ' << layer << ' ' << column;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST_P(PairPatch, EdgesAreThoseOfTheSite) {
  for (const char* const site : sites) {
    ASSERT_TRUE(choose(site, "edge_cut"));
    const PatchedSite patched = patched_site(architecture(), request_);
    const PatchResult found = patch_sweep(model_, request_);
    ASSERT_EQ(found.rows, patched.queries);
    ASSERT_EQ(found.columns, patched.keys);
    EXPECT_EQ(patched.keys, std::string(site) == "decoder" ? 5 : 7);
    for (std::int64_t t = 0; t < found.rows; ++t) {
      for (std::int64_t s = 0; s < found.columns; ++s) {
        if (std::string(site) == "decoder" && s > t) {
          EXPECT_TRUE(std::isnan(found.value(t, s)));
          continue;
        }
        EXPECT_EQ(found.value(t, s), metric({{pattern_point(patched.site, 1),
                                              {.heads = {1}},
                                              CutEdges{{{t, s}}, CutEdges::Rest::kept}}}))
            << site << ' ' << t << ' ' << s;
      }
    }
  }
}

// Where the texts hardly differ, first order is all there is.
TEST_P(PairPatch, TheEstimateIsExactToFirstOrder) {
  const View<float> table =
      model_.parameters().tensor({Role::token_embedding, Part::weight, -1, StackSite::encoder});
  const std::int32_t other = 17, token = request_.clean.source[3];
  for (std::int64_t c = 0; c < 32; ++c) {
    table(other, c) = table(token, c) + 1e-3F * static_cast<float>(std::sin(c));
  }
  for (const char* const site : sites) {
    for (const std::string& grid : patch_grid_names()) {
      if (!choose(site, grid) || patch_grid_kind(request_.grid).is_edge()) continue;
      request_.method = PatchMethod::exact;
      const PatchResult exact = patch_sweep(model_, request_);
      request_.method = PatchMethod::attribution;
      const PatchResult estimated = patch_sweep(model_, request_);
      ASSERT_EQ(estimated.columns, exact.columns);
      const double change = std::abs(exact.clean - exact.corrupted);
      ASSERT_GT(change, 5e-5);
      double largest = change;
      for (const double value : exact.values) {
        largest = std::max(largest, std::abs(value - exact.corrupted));
      }
      for (std::size_t i = 0; i < exact.values.size(); ++i) {
        // What is beyond first order is small beside the largest effect; 3e-6: the rounding of
        // logits of about one in f32.
        EXPECT_NEAR(estimated.values[i], exact.values[i], 0.03 * largest + 6e-6)
            << site << ' ' << grid << ' ' << i;
      }
    }
  }
}

TEST_P(PairPatch, RefusesWhatIsNotThere) {
  const auto refuses = [&](const PatchRequest& request, const std::string& part) {
    expect_error(
        ErrorCode::invalid_argument, [&] { patch_sweep(model_, request); }, part);
  };
  PatchRequest request = request_;
  request.site = "self";
  refuses(request, "expected encoder, decoder or cross");
  request.site = "cross";
  refuses(request, "expected the site encoder or decoder, not cross");
  request = request_;
  request.clean.source.pop_back();
  refuses(request, "the clean source has 6 tokens and the corrupted one 7");
  request = request_;
  request.clean.target.pop_back();
  refuses(request, "the clean target has 4 tokens and the corrupted one 5");
  request = request_;
  request.corrupted.source[0] = 50;
  refuses(request, "50");
  request = request_;
  request.grid = PatchGrid::edge;
  request.site = "cross";
  request.layer = 2;
  request.head = 0;
  refuses(request, "layers 0 to 1 and heads 0 to 3");
}

}  // namespace
}  // namespace heed
