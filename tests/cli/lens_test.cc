// heed lens and heed explain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
using testing::with_model;

TEST(Lens, EndsAtThePrediction) {
  const Json lens = json_of("lens --json --token '#9' --tokens 5,17,4 " + with_model());
  const Json next = json_of("predict --json --top 400 --tokens 5,17,4 " + with_model());
  ASSERT_EQ(lens["layers"].size(), 3U);
  const Json& last = lens["layers"][2]["positions"][2];
  EXPECT_EQ(last["top"][0]["id"], next["candidates"][0]["id"]);
  EXPECT_NEAR(last["top"][0]["probability"].get<double>(),
              next["candidates"][0]["probability"].get<double>(), 1e-5);
  EXPECT_NEAR(last["kl_to_last"].get<double>(), 0, 1e-6);
  const auto asked = std::ranges::find_if(
      next["candidates"], [](const Json& candidate) { return candidate["id"] == 9; });
  ASSERT_NE(asked, next["candidates"].end());
  EXPECT_NEAR(last["probability"].get<double>(), (*asked)["probability"].get<double>(), 1e-5);
  EXPECT_NEAR(last["logit"].get<double>(), (*asked)["logit"].get<double>(), 1e-4);
}

TEST(Lens, TakesTheStreamApart) {
  for (const char* by : {"component", "head"}) {
    const std::string call =
        std::string("lens --residual --by ") + by + " --tokens 5,17,4 " + with_model();
    const Json residual = json_of(call + " --json")["residual"];
    EXPECT_EQ(residual["position"], 2);
    double shares = 0;
    for (const Json& part : residual["parts"]) shares += part["share"].get<double>();
    EXPECT_NEAR(shares, 1, 1e-5);
    EXPECT_THAT(run_heed(call).out, HasSubstr("sum to 100 %"));
  }
  EXPECT_EQ(run_heed("lens --residual --by neuron --tokens 5 " + with_model()).status, 2);
  EXPECT_EQ(run_heed("lens --residual --token '#9' --tokens 5 " + with_model()).status, 2);
}

TEST(Lens, NamesWordsOnlyWhereTheyAreNearerThanChance) {
  const std::string call = "lens --nearest --top 3 --position 1 --tokens 5,17,4 " + with_model();
  const Json found = json_of(call + " --json")["nearest"];
  EXPECT_EQ(found["position"], 1);
  EXPECT_EQ(found["depths"][0]["point"], "hook_embed");
  EXPECT_NE(found["depths"][0]["best"]["token"]["id"], 17);  // the word itself
  for (const Json& depth : found["depths"]) {
    EXPECT_EQ(depth["words"].empty(), depth["best"]["cosine"] <= depth["chance"]);
    EXPECT_LE(depth["words"].size(), 3U);
  }
  EXPECT_THAT(run_heed(call).out, HasSubstr("Chance: the largest cosine"));
  for (const char* wrong :
       {"--residual", "--by head", "--no-norm", "--per-cell 2", "--out x.svg"}) {
    const Outcome refused = run_heed(call + " " + wrong);
    EXPECT_EQ(refused.status, 2) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("--")) << wrong;
  }
}

TEST(ExplainNeuron, SaysWhatWasSearchedAndHowToGiveAnotherText) {
  const std::string call = "explain neuron --layer 0 --neuron 5 --top 3 ";
  const std::string unread = run_heed(call + with_model()).out;
  EXPECT_THAT(unread, HasSubstr("300 stories of the microworld, which this model has not read"));
  EXPECT_THAT(unread, HasSubstr("--text book.txt"));
  EXPECT_THAT(run_heed(call + "-m starter").out,
              HasSubstr("Contexts in 300 stories of the microworld:"));
  const testing::TemporaryDirectory directory;
  const std::string file = (directory / "book.txt").string();
  write_text_file(file, "One day a mole met a hare. The hare was glad.");
  const std::string given = run_heed(call + with_model() + " --text " + file).out;
  EXPECT_THAT(given, HasSubstr("Contexts in " + file + ":"));
  EXPECT_EQ(json_of(call + "--json " + with_model())["source"], "microworld");
}

TEST(Graph, PathsAreMeasuredAndTheGraphIsAFileForViewers) {
  const std::string call = "graph 'Late one evening, a fluffy blue hare' -m starter ";
  const testing::TemporaryDirectory directory;
  const std::string file = (directory / "graph.json").string();
  const Json found = json_of(call + "--json --neurons 32 --out " + file);
  ASSERT_EQ(found["paths"].size(), 3U);
  EXPECT_EQ(found["unit"], "feature");  // of the transcoders that heed carries
  EXPECT_EQ(json_of(call + "--json --transcoders none --paths 2")["unit"], "neuron");
  const Json listed = json_of(call + "--json --transcoders starter --features 2");
  EXPECT_EQ(listed["features"].size(), 2U);
  for (const Json& path : found["paths"]) {
    bool beats = found["probability"].get<double>() - path["without"].get<double>() >= 0.005;
    for (const Json& control : path["controls"]) {
      beats = beats && found["probability"].get<double>() - path["without"].get<double>() >
                           std::abs(found["probability"].get<double>() - control.get<double>());
    }
    EXPECT_EQ(path["cause"], beats);
  }
  EXPECT_THAT(run_heed(call).out, HasSubstr("Because of"));
  const Json graph = Json::parse(read_text_file(file));
  std::size_t neurons = 0;
  for (const Json& node : graph["nodes"]) {
    neurons += node["feature_type"] == "cross layer transcoder" ? 1 : 0;
  }
  EXPECT_EQ(neurons, 32U);
  EXPECT_FALSE(graph["links"].empty());
  EXPECT_EQ(run_heed(call + "--out graph.svg").status, 2);
}

TEST(Lens, FitsTheTerminal) {
  for (const char* columns : {"60", "100"}) {
    const Outcome outcome =
        run_heed("lens 'A fluffy mole dug a hole in the verdant forest' " + with_model(),
                 std::string("COLUMNS=") + columns);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.out, HasSubstr("L1"));
    EXPECT_THAT(outcome.out, HasSubstr("out"));
  }
}

TEST(Lens, AttributionsSumToTheLogit) {
  for (const char* by : {"component", "head", "neuron", "source"}) {
    const Json found =
        json_of(std::string("lens --json --attribute '#7' --against '#9' --tokens 5,17,4 --by ") +
                by + " " + with_model())["attribution"];
    double sum = 0;
    for (const Json& term : found["terms"]) sum += term["value"].get<double>();
    const double logit = found["logit"].get<double>();
    EXPECT_NEAR(sum, logit, 1e-5 * std::max(1.0, std::abs(logit))) << by;
  }
  const Json input = json_of("lens --json --attribute '#7' --by input --steps 8 --tokens 5,17,4 " +
                             with_model())["attribution"];
  EXPECT_EQ(input["values"].size(), 3U);
}

TEST(Lens, AttributionsOfInputsBeginAtABaselineAndReachTheirSum) {
  const std::string asked = "lens --attribute '#7' --by input --tokens 5,17,4 ";
  const auto baseline = [&](const std::string& given) {
    const Json found =
        json_of(asked + "--json --baseline " + given + " " + with_model())["attribution"];
    double sum = 0;
    for (const Json& value : found["values"]) sum += value.get<double>();
    const double change = found["metric"].get<double>() - found["baseline"].get<double>();
    EXPECT_NEAR(sum, change, 0.05 * std::abs(change)) << given;
    return found["baseline"].get<double>();
  };
  const double zero = baseline("zero");
  EXPECT_NE(baseline("mean"), zero);
  EXPECT_NE(baseline("'#9'"), zero);
  const Outcome refused = run_heed(asked + "--steps 1 " + with_model());
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("take more steps, or another baseline"));
  EXPECT_THAT(refused.out, ::testing::Not(HasSubstr("█")));
}

TEST(Lens, TakesInterventions) {
  const std::string text = " --tokens 5,17,4 " + with_model();
  const std::string changes = " --ablate L0H1 --scale resid_mid1=0.5 --cut 'L1H0:2>1'";
  const Json next = json_of("predict --json --top 1" + changes + text);
  const Json lens = json_of("lens --json" + changes + text);
  EXPECT_EQ(lens["interventions"], "ablate L0H1, scale resid_mid1=0.5, cut L1H0:2>1");
  EXPECT_EQ(lens["layers"][2]["positions"][2]["top"][0]["id"], next["edited"][0]["id"]);
  for (const char* by : {"component", "head", "neuron", "source"}) {
    const Json found = json_of("lens --json --attribute '#7' --against '#9' --by " +
                               std::string(by) + changes + text)["attribution"];
    EXPECT_NEAR(found["sum"].get<double>(), found["logit"].get<double>(), 1e-5) << by;
    const auto is_edit = [](const Json& term) { return term["name"] == "1_resid_mid_edit"; };
    EXPECT_TRUE(std::ranges::any_of(found["terms"], is_edit)) << by;
  }
  const Outcome residual = run_heed("lens --residual" + changes + text);
  EXPECT_THAT(residual.out, HasSubstr("1_resid_mid_edit"));
  EXPECT_THAT(residual.out, HasSubstr("changed: ablate L0H1"));
  const testing::TemporaryDirectory directory;
  const std::string file = (directory / "sources.svg").string();
  EXPECT_EQ(run_heed("lens --attribute '#7' --by source --out " + file + changes + text).status, 0);
  EXPECT_THAT(read_text_file(file), HasSubstr("Changed: ablate L0H1"));
}

TEST(Lens, AttributionsOfQuantisedWeightsSumToo) {
  for (const char* dtype : {"bf16", "int8", "int4"}) {
    const Json found = json_of("lens --json --attribute '#7' --by source --tokens 5,17,4 --dtype " +
                               (dtype + (" " + with_model())))["attribution"];
    EXPECT_NEAR(found["sum"].get<double>(), found["logit"].get<double>(), 1e-5) << dtype;
    EXPECT_EQ(found["terms"].back()["name"], "rounding") << dtype;
  }
}

TEST(Lens, WritesFiguresAndArrays) {
  const testing::TemporaryDirectory directory;
  const std::string call = "lens 'A mole dug' " + with_model() + " --out ";
  for (const char* name :
       {"a.svg", "a.png", "a.html", "a.npz", "a.safetensors", "a.json", "a.csv"}) {
    const std::string file = (directory / name).string();
    EXPECT_EQ(run_heed(call + file).status, 0) << name;
    EXPECT_GT(read_text_file(file).size(), 100U) << name;
    for (const char* by : {"head", "source", "component", "neuron", "input"}) {
      EXPECT_EQ(run_heed(call + file + " --attribute '#7' --by " + by).status, 0);
    }
  }
}

TEST(Lens, RefusesBeforeItWorks) {
  const auto refused = [](const std::string& arguments, const char* message) {
    const Outcome outcome = run_heed("lens 'A mole' " + with_model() + " " + arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.out, "");
  };
  refused("--token ' two words'", "tokens, not one");
  refused("--token '#400'", "ids are 0 to");
  refused("--attribute '#3' --position 99", "position 99");
  refused("--against '#3'", "--attribute");
  refused("--attribute '#3' --by layer", "--by");
  refused("--out picture.pdf", "no known format");
  refused("--ablate L7", "layers 0 to 1");
  refused("--attribute '#3' --by input --ablate L0H1", "takes no interventions");
  const Outcome head = run_heed("explain head --layer 1 --head 3 " + with_model());
  EXPECT_EQ(head.status, 2);
  EXPECT_THAT(head.err, HasSubstr("head 3"));
}

TEST(Explain, ReadsWeights) {
  const Json composition = json_of("explain composition --json --kind key " + with_model());
  EXPECT_EQ(composition["pairs"].size(), 8U);
  const Json head = json_of("explain head --json --layer 1 --head 2 " + with_model());
  EXPECT_EQ(head["W_OV"].size(), 6U);
  EXPECT_EQ(head["W_QK"][0]["query"]["most"].size(), 8U);
  const Outcome neuron =
      run_heed("explain neuron --json --layer 0 --neuron 5 --top 3 " + with_model());
  EXPECT_EQ(neuron.status, 0) << neuron.err;
  EXPECT_EQ(parse_json(neuron.out, "neuron")["contexts"].size(), 3U);
}

}  // namespace
}  // namespace heed
