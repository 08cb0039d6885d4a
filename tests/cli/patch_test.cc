#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "cli/run_heed.h"
#include "support/small_model.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_heed;
using testing::with_model;

const std::string prompts = " --clean-tokens 5,17,4,9 --corrupted-tokens 5,18,4,9 ";

TEST(PatchCommand, PrintsAGridAndWritesIt) {
  const testing::ScratchDirectory scratch;
  const auto file = scratch.path() / "grid.json";
  const std::string call =
      "patch " + with_model() + prompts + "--answer '#7' --wrong '#8' -o " + file.string();
  const Outcome outcome = run_heed(call + " --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json grid = parse_json(outcome.out, "output");
  EXPECT_EQ(parse_json(read_text_file(file), "file"), grid);
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".cells"));
  ASSERT_EQ(grid["values"].size(), 2U);
  ASSERT_EQ(grid["values"][0].size(), 4U);
  // The same first token: nothing to put back. All of the stream that differs: all comes back.
  EXPECT_NEAR(grid["recovered"][0][0].get<double>(), 0, 1e-4);
  EXPECT_NEAR(grid["recovered"][0][1].get<double>(), 1, 1e-4);
  EXPECT_THAT(run_heed(call).out, HasSubstr("layer 1"));
}

TEST(PatchCommand, SaysWhatIsWrongBeforeItWorks) {
  const std::string call = "patch " + with_model();
  const auto expect = [](const std::string& arguments, const std::string& message) {
    const Outcome outcome = run_heed(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  };
  expect(call + " --clean-tokens 5,6 --corrupted-tokens 5 --metric kl", "the same number");
  expect(call + prompts + "--answer Xylophonist --wrong '#8'", "single ones");
  expect(call + prompts + "--wrong '#8'", "needs --answer");
  expect(call + prompts + "--metric kl --grid resid_per", "'resid_pre'");
  expect(call + prompts + "--metric likelihood", "logit-difference");
  expect(call + prompts + "--metric kl --grid edge", "edges are those of one head");
  expect(call + prompts + "--metric kl --grid edge --head L1H7", "heads 0 to 2");
  expect(call + " --corrupted-tokens 5 --metric kl", "clean prompt");
}

TEST(Predict, ShowsBeforeAndAfterAnIntervention) {
  const std::string call = "predict --tokens 5,17,4,9 " + with_model();
  const Outcome outcome = run_heed(call + " --json --ablate L1H2 --cut 'L0H0:3>1' --renormalise");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "output");
  EXPECT_NE(document["edited"][0]["logit"], document["candidates"][0]["logit"]);
  // Multiplied by one, nothing changes.
  const Json same = parse_json(run_heed(call + " --json --scale L1H2=1").out, "output");
  EXPECT_EQ(same["edited"], same["candidates"]);
  EXPECT_THAT(run_heed(call + " --ablate L1").out, HasSubstr("before and after"));
  EXPECT_THAT(run_heed(call + " --ablate L9H0").err, HasSubstr("layers 0 to 1"));
  EXPECT_THAT(run_heed(call + " --ablate blocks.0.attn.hook_y").err, HasSubstr("did you mean"));
}

TEST(Generate, IntervenesFromAStepOn) {
  const std::string call =
      "generate --json --greedy -n 6 --ignore-eos --tokens 5,17,4 " + with_model();
  const auto tokens = [&](const std::string& options) {
    const Outcome outcome = run_heed(call + options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "output")["tokens"].get<std::vector<std::int32_t>>();
  };
  const auto plain = tokens("");
  const auto late = tokens(" --ablate 'blocks.*.hook_resid_post' --edit-from-step 3");
  // The token at step 3 is read before the one at step 4 is drawn.
  for (int i = 0; i <= 3; ++i) EXPECT_EQ(late[i], plain[i]);
}

TEST(InductionCommand, MeasuresHeads) {
  const Outcome outcome = run_heed("induction --json -n 2 --length 8 " + with_model());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "output");
  EXPECT_EQ(document["induction"].size(), 6U);
  EXPECT_THAT(document["induction_head"].get<std::string>(), HasSubstr("L"));
}

}  // namespace
}  // namespace heed
