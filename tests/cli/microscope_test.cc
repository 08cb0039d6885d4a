#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "cli/run_heed.h"
#include "support/small_model.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;
using testing::with_model;

TEST(TraceCommand, SaysAndWritesWhatItSaw) {
  const testing::ScratchDirectory scratch;
  const std::string file = (scratch.path() / "trace.safetensors").string();
  const Json document = json_of(
      "trace --tokens 5,17,4 --points resid_pre,pattern1,resid_post_grad --heads 0,2 "
      "--positions=-1 --json --out " +
      file + " " + with_model());
  ASSERT_EQ(document["arrays"].size(), 2U + 1U + 2U);
  EXPECT_EQ(document["arrays"][0]["name"], "blocks.0.hook_resid_pre");
  EXPECT_EQ(document["arrays"][0]["shape"], Json({1, 1, 24}));
  EXPECT_EQ(document["arrays"][2]["shape"], Json({1, 2, 1, 3}));
  EXPECT_EQ(document["arrays"][4]["name"], "blocks.1.hook_resid_post_grad");
  const SafetensorsFile written = SafetensorsFile::open(file);
  ASSERT_NE(written.find("blocks.1.attn.hook_pattern"), nullptr);
  EXPECT_EQ(written.find("blocks.1.attn.hook_pattern")->shape, (Shape{1, 2, 1, 3}));
  EXPECT_NE(written.find("tokens"), nullptr);
}

TEST(TraceCommand, TracesAGenerationToo) {
  const Json document = json_of("trace --tokens 5,17,4 --points k0 -n 6 --json " + with_model());
  EXPECT_EQ(document["arrays"][0]["shape"], Json({1, 9, 3, 8}));
  EXPECT_EQ(document["tokens"].size(), 9U);
}

TEST(TraceCommand, SeesInterventions) {
  const Json document =
      json_of("trace --tokens 5,17,4 --points mlp_out1,z0 --ablate L1.mlp --json " + with_model());
  EXPECT_NE(document["arrays"][0]["max"], 0);
  EXPECT_EQ(document["arrays"][1]["max"], 0);
}

TEST(TraceCommand, TakesPointsOneByOneAndATextBehindThem) {
  const Json document =
      json_of("trace --points resid_pre0 --points k1,v1 'A mole' --json " + with_model());
  EXPECT_EQ(document["arrays"].size(), 3U);
}

TEST(TraceCommand, RefusesBeforeItWorks) {
  const auto expect = [](const std::string& arguments, int status, const std::string& message) {
    const Outcome outcome = run_heed("trace --tokens 5,17,4 " + arguments + " " + with_model());
    EXPECT_EQ(outcome.status, status) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
    EXPECT_EQ(outcome.out, "");
  };
  expect("", 2, "--points");
  expect("--points blocks.0.hook_resid_pree", 2, "'blocks.0.hook_resid_pre'");
  expect("--points q --heads 3", 2, "head 3 does not exist: there are heads 0 to 2");
  expect("--points q --layers 1-x", 2, "'1-x'");
  expect("--points q --budget much", 2, "'much' is not a size");
  expect("--points q --budget 100", 2, "more than its budget of 100 bytes");
  expect("--points q --out trace.txt", 2, ".npz");
  expect("--points q --against x", 2, "--logit");
}

TEST(HeadsCommand, ListsEveryHeadTheStrongestFirst) {
  const Json document =
      json_of("heads --tokens 5,17,4,5,17,4,9 --detect induction --json " + with_model());
  ASSERT_EQ(document["heads"].size(), 6U);
  double before = 1;
  for (const Json& head : document["heads"]) {
    for (const char* key : {"entropy", "evenness", "distance", "first", "self", "previous",
                            "duplicate", "induction", "content_weight", "detected"}) {
      EXPECT_TRUE(head.contains(key)) << key;
    }
    EXPECT_LE(head["detected"].get<double>(), before);
    before = head["detected"].get<double>();
  }
  const Outcome table = run_heed("heads --tokens 5,17,4,5 --sort first --top 2 " + with_model());
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("weight on the first token"));
  EXPECT_THAT(table.out, HasSubstr("over all queries but the first"));
}

TEST(HeadsCommand, TakesInterventionsAndAFormat) {
  const std::string call = "heads --tokens 5,17,4,5,17,4,9 --sort self --json " + with_model();
  const auto head = [](const Json& document, int layer, int index) {
    for (const Json& each : document["heads"]) {
      if (each["layer"] == layer && each["head"] == index) return each;
    }
    return Json();
  };
  const Json before = json_of(call);
  const Json cut = json_of(call + " --cut 'L0H1:1>1,2>2,3>3,4>4,5>5,6>6'");
  EXPECT_EQ(cut["interventions"], "cut L0H1:1>1,2>2,3>3,4>4,5>5,6>6");
  EXPECT_GT(head(before, 0, 1)["self"], 0.01);
  EXPECT_EQ(head(cut, 0, 1)["self"], 0);
  EXPECT_EQ(head(cut, 0, 0), head(before, 0, 0));
  EXPECT_NE(head(cut, 1, 0), head(before, 1, 0));
  EXPECT_NE(head(json_of(call + " --dtype bf16"), 0, 0), head(before, 0, 0));
  const Outcome table = run_heed("heads --tokens 5,17,4 --ablate L0H1 " + with_model());
  EXPECT_THAT(table.out, HasSubstr("changed: ablate L0H1"));
}

TEST(TraceCommand, TakesAFormat) {
  const std::string call = "trace --tokens 5,17,4 --points resid_post1_grad,z0 --json ";
  EXPECT_NE(json_of(call + "--dtype int8 " + with_model())["arrays"],
            json_of(call + with_model())["arrays"]);
}

TEST(HeadsCommand, ReadsAFileLongerThanTheContext) {
  const testing::ScratchDirectory scratch;
  const std::string file = (scratch.path() / "text.txt").string();
  std::string text;
  for (int i = 0; i < 200; ++i) text += "A fluffy mole met a blue hare. ";
  write_text_file(file, text);
  const Json document =
      json_of("heads --statistics first,self --text " + file + " --json " + with_model());
  EXPECT_GT(document["token_count"].get<int>(), 128);  // the model's context
  EXPECT_EQ(document["heads"].size(), 6U);
}

TEST(HeadsCommand, RefusesWhatItDoesNotKnow) {
  const auto expect = [](const std::string& arguments, const std::string& message) {
    const Outcome outcome = run_heed("heads --tokens 5,17,4 " + arguments + " " + with_model());
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  };
  expect("--statistics entropie", "there is no statistic 'entropie'; there are entropy,");
  expect("--sort detected", "not by 'detected'");
  expect("--detect anything", "--detect");
  expect("--text CMakeLists.txt", "--text");
  expect("--ablate L9H0", "layers 0 to 1");
  expect("--dtype f8", "there is no dtype 'f8'");
}

}  // namespace
}  // namespace heed
