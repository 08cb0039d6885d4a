#include "heed/patch.h"

#include <gtest/gtest.h>

#include "heed/intervention.h"
#include "support/small_model.h"

namespace heed {
namespace {

TEST(PatchSweepOfAModel, IsThatOfOneEditPerCell) {
  const testing::ScratchDirectory directory;
  testing::write_small_model(directory.path());
  const Model model = Model::load(directory.path().string());
  PatchRequest request{.clean = {.target = {5, 17, 4, 9}},
                       .corrupted = {.target = {5, 18, 4, 2}},
                       .grid = PatchGrid::head_value,
                       .metric = {.answer = 7, .wrong = 8}};
  std::int64_t reports = 0;
  request.progress = [&](std::int64_t, std::int64_t cells) {
    EXPECT_EQ(cells, 6);
    ++reports;
    return true;
  };
  const PatchResult found = patch_sweep(model, request);
  EXPECT_EQ(reports, 2);  // before the batch, which holds all cells, and at the end
  ASSERT_EQ(found.rows, 2);
  ASSERT_EQ(found.columns, 3);
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    for (std::int64_t head = 0; head < 3; ++head) {
      const std::string where = "L" + std::to_string(layer) + "H" + std::to_string(head) + ".v";
      const auto logits = EditedModel(model, {{where, TakeFromText{request.clean}}})
                              .logits(request.corrupted.target);
      EXPECT_NEAR(found.value(layer, head), logits[7] - logits[8], 1e-4);  // logits of about ten
    }
  }
  request.progress = [](std::int64_t, std::int64_t) { return false; };
  try {
    patch_sweep(model, request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::interrupted);
  }
}

}  // namespace
}  // namespace heed
