// heed sae: train, features, eval.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;

class Sae : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome stories = run_heed("microworld --stories 400");
    ASSERT_EQ(stories.status, 0) << stories.err;
    write_text_file(directory_.path() / "stories.txt", stories.out);
  }
  std::string path(const std::string& name) const {
    return "'" + (directory_.path() / name).string() + "'";
  }
  std::string train(const std::string& out) const {
    return "sae train --data " + path("stories.txt") +
           " --point blocks.2.hook_resid_pre --features 128 -k 8 --batch 256 --buffer 1024 "
           "--window 64 --rate 0.002 -o " +
           path(out);
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(Sae, IsTrainedMeasuredAndRead) {
  const Json trained = json_of(train("sae") + " --steps 60 --json");
  EXPECT_EQ(trained["steps"], 60);
  EXPECT_EQ(trained["interrupted"], false);
  EXPECT_GT(trained["evaluation"]["loss_recovered"].get<double>(), 0.3);
  EXPECT_LE(trained["evaluation"]["l0"].get<double>(), 8);

  const std::string data = " --data " + path("stories.txt") + " --window 64 --tokens 2048";
  const Json measured = json_of("sae eval " + path("sae") + data + " --json");
  EXPECT_EQ(measured["point"], "blocks.2.hook_resid_pre");
  EXPECT_GT(measured["loss_with_zeros"], measured["loss_with"]);

  const Json found = json_of("sae features " + path("sae") + data + " --count 2 --top 3 --json");
  ASSERT_EQ(found["features"].size(), 2U);
  EXPECT_GE(found["features"][0]["density"], found["features"][1]["density"]);
  EXPECT_EQ(found["features"][0]["raises"].size(), 3U);
  EXPECT_LE(found["features"][0]["contexts"].size(), 3U);
  const Outcome shown = run_heed("sae features " + path("sae") + data + " --features 5,7");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("Feature 5"));
  EXPECT_THAT(shown.out, HasSubstr("Feature 7"));

  const Outcome again = run_heed(train("sae") + " --steps 1");
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("holds a dictionary already"));
}

TEST_F(Sae, TranscodersOfAllLayersMakeAGraph) {
  const std::string graph = "graph 'The fox waited in the forest, and the hare saw the' ";
  for (int layer = 0; layer < 6; ++layer) {
    const Outcome trained = run_heed(fmt::format(
        "sae train --data {} --point blocks.{}.ln2.hook_normalized --to blocks.{}.hook_mlp_out "
        "--features 96 -k 8 --batch 256 --buffer 1024 --window 64 --rate 0.002 --steps 4 -o {}",
        path("stories.txt"), layer, layer, path(fmt::format("all/layer_{}", layer))));
    ASSERT_EQ(trained.status, 0) << trained.err;
    if (layer == 4) {
      const Outcome few = run_heed(graph + "--transcoders " + path("all"));
      EXPECT_EQ(few.status, 2);
      EXPECT_THAT(few.err, HasSubstr("no transcoder for layers 5"));
    }
  }
  const Json found = json_of(graph + "--transcoders " + path("all") +
                             " --features 3 --json --out " + path("graph.json"));
  ASSERT_EQ(found["features"].size(), 3U);
  EXPECT_GE(found["features"][0]["influence"], found["features"][1]["influence"]);
  EXPECT_GT(found["share_of_errors"].get<double>(), 0);
  const Json written = Json::parse(read_text_file(directory_.path() / "graph.json", 1 << 26));
  const auto has_kind = [&](const std::string& kind) {
    return std::ranges::any_of(written["nodes"],
                               [&](const Json& node) { return node["feature_type"] == kind; });
  };
  EXPECT_TRUE(has_kind("cross layer transcoder"));
  EXPECT_TRUE(has_kind("mlp reconstruction error"));
  const Outcome shown = run_heed(graph + "--transcoders " + path("all") + " --features 3");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("L" + found["features"][0]["layer"].dump() + "F" +
                                   found["features"][0]["feature"].dump()));
  EXPECT_THAT(shown.out, HasSubstr("transcoders leave out"));
}

TEST_F(Sae, RefusesWhatCannotBe) {
  const auto expect_refused = [&](const std::string& call, const std::string& part) {
    const Outcome outcome = run_heed(call);
    EXPECT_NE(outcome.status, 0) << call;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << call;
  };
  expect_refused(train("a") + " --to blocks.0.hook_mlp_out", "cannot be made of it");
  expect_refused(
      "sae train --point hook_residue --data " + path("stories.txt") + " -o " + path("b"),
      "hook_residue");
  expect_refused(train("a") + " --head 0", "head 0 at blocks.2.hook_resid_pre does not exist");
  expect_refused("sae train --point blocks.0.attn.hook_z --head 99 --data " + path("stories.txt") +
                     " -o " + path("b"),
                 "head 99 at blocks.0.attn.hook_z does not exist: there are 6 heads");
  expect_refused(train("c") + " --architecture gated", "topk, standard or jumprelu");
  expect_refused("sae features " + path("none") + " --data " + path("stories.txt"),
                 "does not exist");
  expect_refused("graph 'The cat' --features 3", "--transcoders");
  expect_refused("graph 'The cat' --transcoders none --features 3", "--transcoders");
  expect_refused("graph 'The cat' --transcoders starter --paths 2", "--paths");
  EXPECT_EQ(run_heed("sae").status, 2);
}

}  // namespace
}  // namespace heed
