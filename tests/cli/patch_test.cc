#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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

const std::string prompt_pair = " --clean-tokens 5,17,4,9 --corrupted-tokens 5,18,4,9 ";

TEST(PatchCommand, PrintsAGridAndWritesIt) {
  const testing::ScratchDirectory scratch;
  const auto file = scratch.path() / "grid.json";
  const std::string call =
      "patch " + with_model() + prompt_pair + "--answer '#7' --wrong '#8' -o " + file.string();
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
  EXPECT_THAT(run_heed(call).out, HasSubstr("block 1"));
}

TEST(PatchCommand, EstimatesAndDraws) {
  const testing::ScratchDirectory scratch;
  const std::string call = "patch " + with_model() + prompt_pair +
                           "--answer '#7' --wrong '#8' --grid attn_head_out --method attribution";
  const Json grid = parse_json(run_heed(call + " --json").out, "output");
  EXPECT_EQ(grid["method"], "attribution");
  EXPECT_EQ(grid["values"][1].size(), 3U);
  EXPECT_THAT(run_heed(call).out, HasSubstr("estimated from gradients"));
  for (const char* name : {"grid.svg", "grid.npz"}) {
    const auto file = scratch.path() / name;
    const Outcome outcome = run_heed(call + " -o " + file.string());
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(std::filesystem::file_size(file), 500U);
  }
  EXPECT_THAT(read_text_file(scratch.path() / "grid.svg"), HasSubstr("estimated to first order"));
  EXPECT_EQ(run_heed(call + " -o " + (scratch.path() / "grid").string()).status, 2);
  EXPECT_THAT(run_heed(call + " --metric kl").err, HasSubstr("logit difference only"));
}

TEST(PatchCommand, ReadsQuantisedWeights) {
  const std::string call =
      "patch " + with_model() + prompt_pair + "--answer '#7' --wrong '#8' --json --dtype ";
  const Json full = parse_json(run_heed(call + "f32").out, "output");
  const Json rounded = parse_json(run_heed(call + "bf16").out, "output");
  EXPECT_NE(full["clean"], rounded["clean"]);
  EXPECT_NEAR(full["clean"].get<double>(), rounded["clean"].get<double>(), 0.5);
}

TEST(PatchCommand, SaysWhatIsWrongBeforeItWorks) {
  const std::string call = "patch " + with_model();
  const auto expect = [](const std::string& arguments, const std::string& message) {
    const Outcome outcome = run_heed(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  };
  expect(call + " --clean-tokens 5,6 --corrupted-tokens 5 --metric kl", "the same number");
  expect(call + prompt_pair + "--answer Xylophonist --wrong '#8'", "tokens, not one");
  expect(call + prompt_pair + "--wrong '#8'", "needs --answer");
  expect(call + prompt_pair + "--metric kl --grid resid_per", "'resid_pre'");
  expect(call + prompt_pair + "--metric likelihood", "logit-difference");
  expect(call + prompt_pair + "--metric kl --grid edge", "needs a --head");
  expect(call + prompt_pair + "--metric kl --grid edge --head L1H7", "heads 0 to 2");
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

TEST(Predict, TakesEveryKindOfIntervention) {
  const testing::ScratchDirectory scratch;
  const std::string call = "predict --tokens 5,17,4,9 --json " + with_model();
  const auto edited = [&](const std::string& options) {
    const Outcome outcome = run_heed(call + options);
    EXPECT_EQ(outcome.status, 0) << options << outcome.err;
    const Json document = parse_json(outcome.out, options);
    const Json& was = document["candidates"][0];
    const Json& is = document["edited"][0];
    if (was["id"] != is["id"]) return true;
    // A pattern that is put back is rounded on another path.
    return std::abs(was["logit"].get<double>() - is["logit"].get<double>()) > 1e-4;
  };
  const std::string vector = (scratch.path() / "vector.json").string();
  write_text_file(
      vector, "[1.5" + [] {
        std::string rest;
        for (int i = 1; i < 24; ++i) rest += ", 0";
        return rest;
      }() + "]");
  EXPECT_TRUE(edited(" --add L1.mlp=" + vector));
  EXPECT_TRUE(edited(" --steer resid_pre1=2 --steer-to 'A mole' --steer-from 'The queen'"));
  EXPECT_TRUE(edited(" --mean L1H0.q"));
  EXPECT_TRUE(edited(" --replace L0@1-2 --replace-text 'The queen and the wizard'"));
  EXPECT_TRUE(edited(" --freeze L1 --freeze-text 'The queen and the wizard'"));
  EXPECT_FALSE(edited(" --freeze L1"));  // as it is anyway
  const auto refused = [&](const std::string& options, const std::string& message) {
    const Outcome outcome = run_heed(call + options);
    EXPECT_EQ(outcome.status, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << options;
  };
  write_text_file(vector, "[1, 2]");
  refused(" --add L1H0=" + vector, "2 numbers at blocks.1.attn.hook_z, expected 8");
  refused(" --add L1H0", "not POINT=VALUE");
  refused(" --steer resid_pre1=2", "--steer-to");
  refused(" --steer resid_pre1=x --steer-to A", "not a finite number");
  refused(" --replace L0", "--replace-text");
  refused(" --replace L0 --replace-text A", "tokens and the text 4");
  refused(" --freeze L1N3", "no attention pattern");
  refused(" --ablate L1H0.x", ".pattern");
  write_text_file(vector, "{}");
  refused(" --add L1.mlp=" + vector, "not a JSON list of numbers");
}

TEST(Generate, IntervenesFromAStepOn) {
  const std::string call =
      "generate --json --greedy -n 6 --ignore-eos --tokens 5,17,4 " + with_model();
  const auto tokens = [&](const std::string& options) {
    const Outcome outcome = run_heed(call + options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return testing::ids_of(parse_json(outcome.out, "output")["tokens"])
        .get<std::vector<std::int32_t>>();
  };
  const auto plain = tokens("");
  const auto late = tokens(" --ablate 'blocks.*.hook_resid_post' --edit-from-step 3");
  // The token at step 3 is read before the one at step 4 is drawn.
  for (int i = 0; i <= 3; ++i) EXPECT_EQ(late[i], plain[i]);
}

// Random weights have no such head, and none is named.
TEST(InductionCommand, NamesNoHeadWhereThereIsNone) {
  const Outcome outcome = run_heed("induction --json --length 8 " + with_model());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "output");
  EXPECT_EQ(document["induction"].size(), 6U);
  for (const char* absent : {"induction_head", "previous_head", "loss_without_induction_head",
                             "loss_without_previous_edges"}) {
    EXPECT_TRUE(document[absent].is_null()) << absent;
  }
  EXPECT_TRUE(document["induction_score"].is_number());
  const Outcome table = run_heed("induction --length 8 " + with_model());
  EXPECT_THAT(table.out, HasSubstr("No head of this model is an induction head."));
  EXPECT_THAT(table.out, HasSubstr("not significant"));
}

}  // namespace
}  // namespace heed
