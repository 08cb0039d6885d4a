#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"
#include "engine/loaded_model.h"
#include "generate/session.h"
#include "microscope/traces/capture.h"
#include "support/small_encoder.h"
#include "support/small_model.h"

namespace heed {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::ids_of;
using testing::json_of;
using ::testing::Not;
using testing::Outcome;
using testing::run_heed;
using testing::TemporaryDirectory;
using testing::with_model;

TEST(Help, IsThereForEveryCommand) {
  EXPECT_THAT(run_heed("--version").out, HasSubstr("heed 0."));
  const Outcome help = run_heed("--help");
  EXPECT_EQ(help.status, 0);
  for (const std::string command :
       {"tour",    "train",   "generate",   "translate",        "predict",     "attend",
        "trace",   "heads",   "patch",      "induction",        "eval",        "bleu",
        "params",  "plan",    "tokenize",   "tokenizer train",  "convert",     "tensorboard",
        "inspect", "reading", "microworld", "microworld check", "bench train", "graph"}) {
    EXPECT_THAT(help.out, HasSubstr(command.substr(0, command.find(' '))));
    const Outcome own = run_heed(command + " --help");
    EXPECT_EQ(own.status, 0);
    EXPECT_THAT(own.out, HasSubstr("--json"));
  }
}

TEST(Predict, LogitsAreTheModelsToTheLastBit) {
  const Json document = json_of("predict --json --full --tokens 5,17,4 " + with_model());
  const LoadedModel model = load_model(testing::model_directory().string());
  Session session(model.transformer);
  const auto logits = session.feed(std::vector<std::int32_t>{5, 17, 4});
  ASSERT_EQ(document["logits"].size(), logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    EXPECT_EQ(static_cast<float>(document["logits"][i].get<double>()), logits[i]);
  }
  const Json& first = document["candidates"][0];
  for (const char* key :
       {"id", "text", "logit", "scaled", "probability", "rank", "after", "removed_by"}) {
    EXPECT_TRUE(first.contains(key)) << key;
  }
  EXPECT_EQ(ids_of(document["tokens"]), Json({5, 17, 4}));
}

TEST(Predict, ShowsEveryPositionAndTheFilters) {
  const Json document = json_of(
      "predict --json --full --all-positions --top 400 --top-k 7 --temp 0.5 --tokens 5,17 " +
      with_model());
  EXPECT_EQ(document["logits"].size(), 2U);
  EXPECT_EQ(document["positions"].size(), 2U);
  int cut = 0;
  for (const Json& candidate : document["candidates"]) {
    cut += candidate["removed_by"] == "top-k" ? 1 : 0;
    EXPECT_NEAR(candidate["scaled"].get<double>(), candidate["logit"].get<double>() / 0.5, 1e-5);
  }
  EXPECT_EQ(cut, 400 - 7);
  const Json& cut_first = document["candidates"][7];
  EXPECT_EQ(cut_first["after"]["penalties"], cut_first["probability"]);
  EXPECT_EQ(cut_first["after"]["top-k"], 0.0);
  const Json& likeliest = document["candidates"][0];
  EXPECT_GT(likeliest["after"]["top-k"], likeliest["after"]["penalties"]);
}

TEST(Predict, WithoutFullHoldsNoLogits) {
  const Json document = json_of("predict --json --tokens 5,17 " + with_model());
  EXPECT_FALSE(document.contains("logits"));
  EXPECT_EQ(document["candidates"].size(), 10U);
}

TEST(Predict, TakesTheFileOfAModel) {
  const std::string file = "-t 1 -m " + (testing::model_directory() / "model.safetensors").string();
  const std::string call = "predict --json 'a mole' ";
  Json expected = json_of(call + with_model());
  expected.erase("model");
  Json actual = json_of(call + file);
  actual.erase("model");
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(run_heed("tokenize 'a mole' " + file).out,
            run_heed("tokenize 'a mole' " + with_model()).out);
}

TEST(Predict, TakesTextFromAPipe) {
  EXPECT_EQ(json_of("predict --json " + with_model(), "echo 'a mole' |")["tokens"],
            json_of("predict --json 'a mole' " + with_model())["tokens"]);
}

TEST(Predict, RunsOnQuantisedWeights) {
  const std::string call = "predict --json 'and therefore the murderer was' --dtype ";
  const auto token_of = [&](const std::string& dtype) {
    return json_of(call + dtype)["candidates"][0]["id"].get<int>();
  };
  const int expected = token_of("f32");
  for (const char* dtype : {"bf16", "int8", "int4"}) EXPECT_EQ(token_of(dtype), expected) << dtype;
  const Outcome wrong = run_heed(call + "int3");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("no dtype 'int3'"));
}

TEST(Convert, GivesTheModelThatQuantisingOnLoadGives) {
  const testing::ScratchDirectory directory;
  const std::string text = " --json --full --tokens 1,2,3 ";
  for (const std::string dtype : {"f32", "bf16", "int8", "int4"}) {
    const std::string out = (directory.path() / dtype).string();
    const Json converted = json_of("convert " + testing::model_directory().string() + " --dtype " +
                                   dtype + " --out " + out + " --json");
    EXPECT_GT(converted["bytes"], 0);
    EXPECT_EQ(json_of("predict -t 1 -m " + out + text)["logits"],
              json_of("predict --dtype " + dtype + text + with_model())["logits"])
        << dtype;
    EXPECT_EQ(json_of("tokenize --json --tokenizer " + out + " 'a mole'"),
              json_of("tokenize --json --tokenizer " + testing::model_directory().string() +
                      " 'a mole'"));
  }
  const std::string int8 = (directory.path() / "int8").string();
  const std::string call = "convert " + testing::model_directory().string() + " --out " + int8;
  const Outcome there = run_heed(call + " --dtype int4");
  EXPECT_EQ(there.status, 1);
  EXPECT_THAT(there.err, HasSubstr("--force"));
  EXPECT_EQ(run_heed(call + " --dtype int8 --force").status, 0);
  const Outcome twice = run_heed("predict --tokens 1 --dtype int4 -m " + int8);
  EXPECT_EQ(twice.status, 1);
  EXPECT_THAT(twice.err, HasSubstr("rounded twice"));
}

TEST(Generate, QuantisesItsCache) {
  const std::string call = "predict --json --tokens 1,2,3 " + with_model() + " --cache-type ";
  const double logit = json_of(call + "f32")["candidates"][0]["logit"].get<double>();
  for (const char* type : {"bf16", "int8"}) {
    const double other = json_of(call + type)["candidates"][0]["logit"].get<double>();
    EXPECT_NE(other, logit) << type;
    EXPECT_NEAR(other, logit, 0.05 * std::abs(logit)) << type;
  }
  EXPECT_EQ(run_heed("generate --json -n 3 --tokens 1,2 --cache-type int8 " + with_model()).status,
            0);
  const Json eval = json_of("eval --json --tokens 1,2,3,4 --cache-type int8 " + with_model());
  EXPECT_EQ(eval["token_count"], 3);
  const Outcome wrong = run_heed(call + "int4");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("no cache type 'int4'"));
}

TEST(Attend, PatternsAreTheModels) {
  const Json document =
      json_of("attend --json --tokens 5,17,4,9 --layer 1 --head 2 " + with_model());
  const LoadedModel model = load_model(testing::model_directory().string());
  const Capture capture = trace_patterns(model.transformer, std::vector<std::int32_t>{5, 17, 4, 9});
  const View<const float> pattern = capture.at({PointKind::pattern, 1}).view()[0][2];
  for (std::int64_t t = 0; t < 4; ++t) {
    for (std::int64_t s = 0; s < 4; ++s) {
      EXPECT_EQ(static_cast<float>(document["pattern"][t][s].get<double>()), pattern(t, s));
    }
  }
  EXPECT_EQ(json_of("attend --json 'a mole' " + with_model())["heads"].size(), 6U);
  EXPECT_EQ(json_of("attend --json --top 2 'a mole' " + with_model())["heads"].size(), 2U);
}

TEST(Attend, WalksAWord) {
  const Json walk =
      json_of("attend --json --word mole --layer 0 --head 1 'a mole and a mole dug' " +
              with_model())["walk"];
  double sum = 0;
  for (const Json& answer : walk["answers"]) {
    sum += answer["share"].get<double>();
    EXPECT_EQ(answer["score"].is_null(), answer["masked"].get<bool>());
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(walk["query"].size(), 8U);
  const Json first = json_of("attend --json --word mole --occurrence 1 'a mole and a mole dug' " +
                             with_model())["walk"];
  EXPECT_LT(first["position"], walk["position"]);
}

// An encoder's words attend to later ones too; the text stands between [CLS] and [SEP].
TEST(Attend, ShowsAnEncoder) {
  const TemporaryDirectory directory;
  testing::write_small_encoder(directory.path());
  const std::string model = " -m '" + directory.path().string() + "' -t 1 ";
  const Json document = json_of("attend 'the cats sat'" + model + "--json");
  EXPECT_EQ(ids_of(document["tokens"]), (Json{2, 5, 6, 8, 7, 3}));
  const Json& heads = document["heads"];
  ASSERT_GT(heads.size(), 1U);
  double before = 1;
  for (const Json& head : heads) {
    EXPECT_TRUE(head["site"] == "self");
    EXPECT_TRUE(head["content_weight"].is_null()) << "of the past alone";
    EXPECT_TRUE(head["next"].is_number());
    EXPECT_LE(head["largest"].get<double>(), before);
    before = head["largest"].get<double>();
    const Json& pattern = head["pattern"];
    ASSERT_EQ(pattern.size(), 6U);
    double sum = 0, last = 0;
    for (const Json& weight : pattern[0]) sum += last = weight.get<double>();
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_GT(last, 0) << "the first token attends to the last";
  }
  const Outcome overview = run_heed("attend 'the cats sat'" + model);
  EXPECT_EQ(overview.status, 0) << overview.err;
  EXPECT_THAT(overview.out, HasSubstr("every token attends to all"));
  const Outcome listed = run_heed("attend 'the cats sat' --top 2" + model);
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("peak"));
  const Outcome map = run_heed("attend 'the cats sat' --layer 0 --head 1" + model);
  EXPECT_EQ(map.status, 0) << map.err;
  const Json walk =
      json_of("attend 'the cats sat' --layer 0 --head 1 --word the --json" + model)["walk"];
  ASSERT_EQ(walk["answers"].size(), 6U);
  for (const Json& answer : walk["answers"]) EXPECT_FALSE(answer["masked"].get<bool>());
  // [SEP] is no part of the last word.
  EXPECT_EQ(run_heed("attend 'the cats sat' --layer 0 --head 1 --word sat" + model).status, 0);
  const Json by_words = json_of("attend 'the cats sat' --layer 0 --head 1 --words --json" + model);
  ASSERT_EQ(by_words["words"].size(), 5U);
  EXPECT_TRUE(by_words["words"][2]["text"] == "cats");
  EXPECT_TRUE(by_words["words"][4]["text"] == "[SEP]");
  const Outcome unchosen = run_heed("attend 'the cats sat' --word the" + model);
  EXPECT_EQ(unchosen.status, 2);
  EXPECT_THAT(unchosen.err, HasSubstr("give --layer and --head"));
}

// A file of BERT, which has no head: attention and activations to the bit, and no logits.
TEST(Convert, LeavesOutTheHeadOfAnEncoder) {
  const TemporaryDirectory directory;
  testing::write_small_encoder(directory.path());
  const std::string whole = " -m '" + directory.path().string() + "' -t 1 ";
  const std::string out = (directory / "bert.gguf").string();
  const std::string file = " -m '" + out + "' -t 1 ";
  const Json written =
      json_of("convert '" + directory.path().string() + "' --dtype f32 --json --out '" + out + "'");
  EXPECT_THAT(written["left_out"].get<std::string>(), HasSubstr("the masked language model"));
  EXPECT_EQ(json_of("attend 'the cats sat' --json" + file)["heads"],
            json_of("attend 'the cats sat' --json" + whole)["heads"]);
  const auto traced = [&](const std::string& model) {
    const std::string arrays = (directory / "arrays.json").string();
    json_of("trace 'the cats sat' --json --points 'blocks.*' --out '" + arrays + "'" + model);
    return Json::parse(read_text_file(arrays))["arrays"];
  };
  const Json arrays = traced(file);
  EXPECT_GT(arrays.size(), 20U);
  EXPECT_EQ(arrays, traced(whole));
  const Outcome parameters = run_heed("params '" + out + "'");
  EXPECT_EQ(parameters.status, 0) << parameters.err;
  EXPECT_THAT(parameters.out, ContainsRegex("unembedding +none"));
  const auto refused = [&](const std::string& command, const std::string& because) {
    const Outcome outcome = run_heed(command);
    EXPECT_NE(outcome.status, 0) << command;
    EXPECT_THAT(outcome.err, HasSubstr(because));
  };
  refused("trace 'the cats' --points logits" + file, "this model has no unembed.hook_out");
  refused("trace 'the cats' --points 'resid_pre1_grad' --logit 5" + file,
          "this model has none: it is an encoder without the head");
  const std::string back = (directory / "back").string();
  json_of("convert '" + out + "' --dtype f32 --json --out '" + back + "'");
  write_text_file(directory / "text.txt", "the cats sat the cat sat the cats the sat");
  refused("train --data '" + (directory / "text.txt").string() + "' --from '" + back + "' --out '" +
              (directory / "run").string() + "'",
          "this model has none: it is an encoder without the head");
}

// Of many layers the one that is shown is the same as when all are.
TEST(Attend, KeepsWhatItShows) {
  const Json all = json_of("attend --json 'a mole dug' " + with_model())["heads"];
  for (const Json& head : all) {
    const std::string choice =
        fmt::format("--layer {} --head {} ", head["layer"].get<int>(), head["head"].get<int>());
    EXPECT_EQ(json_of("attend --json 'a mole dug' " + choice + with_model())["pattern"],
              head["pattern"]);
  }
  const Outcome overview = run_heed("attend 'a mole dug' " + with_model());
  for (const char* name : {"L0H0", "L0H2", "L1H0", "L1H2"})
    EXPECT_THAT(overview.out, HasSubstr(name));
}

TEST(Eval, TakesTokenIdsInsteadOfAText) {
  const Json document = json_of("eval --json --per-token --tokens 5,17,4 " + with_model());
  EXPECT_EQ(ids_of(document["tokens"]), Json({5, 17, 4}));
  EXPECT_EQ(document["token_count"], 2);
  EXPECT_TRUE(document["bits_per_byte"].is_null());
  EXPECT_NEAR(document["loss"].get<double>(),
              -(document["log_probabilities"][1].get<double>() +
                document["log_probabilities"][2].get<double>()) /
                  2,
              1e-5);
}

TEST(Eval, OneTokenHasNoStandardError) {
  const Json document = json_of("eval --json --tokens 5,17 " + with_model());
  EXPECT_EQ(document["token_count"], 1);
  EXPECT_TRUE(document["standard_error"].is_null());
  EXPECT_THAT(run_heed("eval --tokens 5,17 " + with_model()).out, Not(HasSubstr("±")));
  EXPECT_THAT(run_heed("eval -c 2 --tokens 5,17,4,3 " + with_model()).out, HasSubstr("±"));
}

TEST(Params, CountsTheCacheInEveryFormat) {
  const Json gpt2 = json_of("params gpt2 --json");
  EXPECT_EQ(gpt2["key_value_bytes_per_token"], 2 * 12 * 12 * 64 * 4);
  EXPECT_EQ(gpt2["key_value_bytes_per_token_bf16"], 2 * 12 * 12 * 64 * 2);
  EXPECT_EQ(gpt2["key_value_bytes_per_token_int8"], 2 * 12 * 12 * (64 + 4));
  EXPECT_THAT(run_heed("params gpt2").out, HasSubstr("cached as int8"));
}

TEST(Params, CountsAsDocumented) {
  const Json gpt3 = json_of("params gpt3 --json");
  EXPECT_EQ(gpt3["per_head"]["query"], 12288 * 128);
  EXPECT_EQ(gpt3["attention_block"], 603979776);
  EXPECT_EQ(gpt3["attention_total"], 57982058496);
  EXPECT_EQ(json_of("params gpt2 --json")["total"], 124439808);
  EXPECT_EQ(json_of("params --json")["configs"].is_array(), true);
  // What heed trains has names too. Its vocabulary of 8,000 has 128 channels, tied.
  EXPECT_GT(json_of("params multi30k-en-de --json")["total"], 8000 * 128);
  EXPECT_THAT(run_heed("params translator").out, HasSubstr("2 + 2 blocks"));
  EXPECT_THAT(run_heed("params nothing").err, HasSubstr("shakespeare-masked, gpt2"));
  const std::string directory = testing::model_directory().string();
  EXPECT_EQ(json_of("params --json " + directory), [&] {
    Json same = json_of("params --json " + directory + "/config.json");
    same["name"] = directory;
    return same;
  }());
  EXPECT_EQ(json_of("params --json " + directory + "/model.safetensors")["total"],
            json_of("params --json " + directory)["total"]);
}

TEST(Plan, IsWhatItsFormulasSay) {
  const std::string rates = " --flops 100G --read 4GB";
  const Json plan = json_of(
      "plan gpt2 --nodes 4 --cores 8 --bandwidth 8Gbit --latency 1us "
      "--memory 64GB --json" +
      rates);
  EXPECT_EQ(plan["parameters"], json_of("params gpt2 --json")["total"]);
  EXPECT_EQ(plan["cluster"]["processes"], 4);
  EXPECT_EQ(plan["run"]["sequences_per_step"], 480);
  const double bytes = 4 * 124439808.0 * 3 / 4;
  EXPECT_NEAR(plan["step_seconds"]["gradients"]["bytes"].get<double>(), bytes, 1e-3 * bytes);
  EXPECT_NEAR(plan["step_seconds"]["gradients"]["transfer_seconds"].get<double>(), bytes / 1e9,
              1e-3 * bytes / 1e9);
  const double operations = plan["tokens_per_s"].get<double>() *
                            json_of("params gpt2 --json")["train_flops_per_token"].get<double>();
  EXPECT_LT(operations, 4 * 8 * 100e9);
  EXPECT_NEAR(plan["efficiency"].get<double>(), operations / (4 * 8 * 100e9), 0.02);
  EXPECT_EQ(plan["sweep"].size(), 5U);
  // A step of 480 sequences as one batch, on one node.
  EXPECT_EQ(json_of("plan gpt2 -b 480 -c 64 --memory 100TB --json" + rates)["run"]["batch_size"],
            480);
  const Outcome printed = run_heed("plan gpt3 --nodes 8 --memory 64GB" + rates);
  EXPECT_EQ(printed.status, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("exceeds"));
  EXPECT_THAT(printed.out, HasSubstr("Memory limits"));
}

TEST(Plan, TakesSettingsOfARun) {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "settings.json";
  write_text_file(file, R"({"layers": 2, "heads": 2, "channels": 32, "context": 16,
                            "vocabulary_size": 64, "batch_size": 8})");
  const std::string rates = " --flops 1G --read 1GB --json";
  const Json plan = json_of("plan " + file.string() + rates);
  EXPECT_EQ(plan["run"]["sequences_per_step"], 8);
  EXPECT_EQ(plan["run"]["context"], 16);
  write_text_file(file, R"({"layers": 2, "heads": 2, "channels": 32, "context": 16, "shard": 3,
                            "vocabulary_size": 64, "batch_size": 8})");
  const std::string sharded = "plan " + file.string() + " --nodes 2" + rates;
  EXPECT_EQ(json_of(sharded)["run"]["shard"], 3);
  EXPECT_EQ(json_of(sharded + " --shard 1")["run"]["shard"], 1);
  const std::string model = testing::model_directory().string();
  EXPECT_EQ(json_of("plan " + model + rates)["parameters"],
            json_of("params " + model + " --json")["total"]);
}

// The only test that measures: that there is a rate for everything.
TEST(Plan, MeasuresThisMachine) {
  const Json plan = json_of("plan shakespeare-char-cpu --set batch_size=2 --json");
  ASSERT_FALSE(plan["rates"].empty());
  for (const auto& [name, rate] : plan["rates"].items()) EXPECT_GT(rate.get<double>(), 1e6) << name;
}

TEST(Tokenize, GoesThereAndBack) {
  const std::string tokenizer = "--tokenizer " + testing::model_directory().string() + " ";
  const Json ids = json_of("tokenize --json 'A fluffy mole.' " + tokenizer)["ids"];
  std::string list;
  for (const Json& id : ids) list += (list.empty() ? "" : ",") + id.dump();
  EXPECT_EQ(run_heed("tokenize " + tokenizer + "--decode " + list).out, "A fluffy mole.");
  EXPECT_EQ(run_heed("tokenize 'A fluffy mole.' " + tokenizer).out, list + "\n");
  EXPECT_EQ(run_heed("tokenize --count 'A fluffy mole.' " + tokenizer).out,
            std::to_string(ids.size()) + "\n");
  EXPECT_EQ(json_of("tokenize --json '<|endoftext|>' " + tokenizer)["ids"].size(), 1U);
  EXPECT_GT(json_of("tokenize --json --no-special '<|endoftext|>' " + tokenizer)["ids"].size(), 1U);
  EXPECT_EQ(json_of("tokenize --json " + tokenizer, "printf '' |")["ids"].size(), 0U);
}

TEST(Attend, SumsTheTokensOfAWord) {
  const std::string call = "attend --json --layer 1 --head 2 'one moleskin of carbon' ";
  const Json tokens = json_of(call);
  const Json words = json_of(call + "--words");
  ASSERT_EQ(words["words"].size(), 4U);
  const Json& long_word = words["words"][1];
  EXPECT_EQ(long_word["text"], "moleskin");
  double sum = 0;
  for (auto s = long_word["begin"].get<std::size_t>(); s < long_word["end"]; ++s) {
    sum += tokens["pattern"].back()[s].get<double>();
  }
  EXPECT_NEAR(words["pattern"][3][1].get<double>(), sum, 1e-6);
  EXPECT_THAT(run_heed("attend --layer 1 --head 2 --words 'one moleskin of carbon'").out,
              HasSubstr("1 moleskin"));
  EXPECT_EQ(run_heed("attend --words 'one moleskin'").status, 2);
}

TEST(Generate, SameSeedSameText) {
  const std::string call = "generate --json -p 'A mole' -n 12 -s 7 " + with_model();
  const Json first = json_of(call);
  EXPECT_EQ(first["text"], json_of(call)["text"]);
  EXPECT_EQ(first["tokens"].size(), 12U);
  const Outcome streamed = run_heed("generate --no-prompt -p 'A mole' -n 12 -s 7 " + with_model());
  EXPECT_EQ(streamed.out, first["text"].get<std::string>() + "\n");
}

TEST(Microworld, WritesAndChecks) {
  const Json document = json_of("microworld --json -n 3 -s 5");
  EXPECT_EQ(document["stories"].size(), 3U);
  EXPECT_THAT(run_heed("microworld -n 1 -s 5").out,
              HasSubstr(document["stories"][0]["text"].get<std::string>()));
  const Json chosen = json_of("microworld --json -n 9 --kinds tale,letter");
  EXPECT_EQ(chosen["stories"].size(), 9U);
  for (const Json& story : chosen["stories"]) {
    EXPECT_THAT(story["kind"].get<std::string>(), ::testing::AnyOf("tale", "letter"));
  }
  const Outcome unknown = run_heed("microworld --kinds novel");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("creature, market"));
  const Json check = json_of("microworld check --json --stories 8 --seed 3 " + with_model());
  for (const char* key :
       {"loss_nats_per_story", "entropy_nats_per_story", "sense_accuracy", "static_sense_accuracy",
        "culprit_accuracy", "culprit_min_distance", "adjective_mass", "adjective_head"}) {
    EXPECT_TRUE(check.contains(key)) << key;
  }
}

TEST(Microworld, WritesSentencePairs) {
  const Json document = json_of("microworld --pairs --json -n 3 -s 5");
  ASSERT_EQ(document["pairs"].size(), 3U);
  EXPECT_EQ(document["summary"]["pairs"], 3);
  const std::string english = document["pairs"][0]["english"];
  const std::string german = document["pairs"][0]["german"];
  EXPECT_THAT(run_heed("microworld --pairs -n 1 -s 5").out,
              HasSubstr(english + "\t" + german + "\t0-"));
  for (const char* wrong : {"microworld --pairs --kinds tale", "microworld --pairs --truth",
                            "microworld --pairs --valid 3", "microworld --valid 3"}) {
    EXPECT_EQ(run_heed(wrong).status, 2) << wrong;
  }
}

TEST(Seeds, AreNotNegative) {
  const std::pair<const char*, const char*> expected[] = {{"microworld", "at least 0"},
                                                          {"microworld check", "at least 0"},
                                                          {"induction", "at least 0"},
                                                          {"generate -p a", "from 0 to"}};
  for (const auto& [command, message] : expected) {
    const Outcome outcome = run_heed(std::string(command) + " -s -5");
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << command;
  }
}

// The texture comes over one edge: without it the word that it brings loses most of its
// probability, and the head reads nothing else that does.
TEST(Tour, ShowsTheEdgeThatDecides) {
  const Json word = json_of("tour --json -n 1 'One night, a fluffy blue hare'")["word"];
  EXPECT_EQ(word["word"], "hare");
  const Json edge = word["edge"];
  EXPECT_TRUE(edge["decides"]);
  EXPECT_GT(edge["layer"], 0);
  EXPECT_EQ(edge["layer"], word["layer"]);
  EXPECT_EQ(edge["head"], word["head"]);
  EXPECT_EQ(edge["key"]["text"], " fluffy");
  EXPECT_GT(word["weights"][4], 0.9);
  EXPECT_EQ(edge["likeliest"]["token"]["text"], " soft");
  EXPECT_LT(edge["likeliest"]["after"].get<double>(),
            edge["likeliest"]["before"].get<double>() / 2);
  EXPECT_LT(3 * edge["others"]["cut"].get<double>(), edge["cut"].get<double>());
}

// The commands and the page follow the same rule: see ExplorerEffects.
TEST(Attend, ShowsTheHeadThatTheTourShows) {
  const Json shown = json_of("tour --json -n 1 'They crashed the car'")["word"];
  const Json walk = json_of("attend --json --word car 'They crashed the car'")["walk"];
  EXPECT_EQ(walk["layer"], shown["layer"]);
  EXPECT_EQ(walk["head"], shown["head"]);
}

// As the page does, where an example names a head.
TEST(Attend, ShowsTheHeadOfAnExampleWithItsCaption) {
  const std::string text = " 'Late one evening, a fluffy blue hare'";
  const Json document = json_of("attend --json --word hare" + text);
  EXPECT_EQ(document["walk"]["layer"], 4);
  EXPECT_EQ(document["walk"]["head"], 1);
  EXPECT_EQ(document["example"], "Adjectives belong to a noun");
  EXPECT_TRUE(document["edge"].is_null());
  const std::string said = "The example “Adjectives belong to a noun” is about this head.";
  EXPECT_THAT(run_heed("attend --word hare" + text).out, HasSubstr(said));
  EXPECT_THAT(run_heed("tour -n 1" + text).out, HasSubstr(said));
  EXPECT_THAT(run_heed("attend --word hare" + text).out,
              ContainsRegex("Block[ \n]+2,[ \n]+head[ \n]+3[ \n]+attends"));
  const std::string other = run_heed("attend --word hare 'One night, a fluffy blue hare'").out;
  EXPECT_THAT(other, HasSubstr("With the edge to ␣fluffy cut, ␣soft goes from"));
  EXPECT_THAT(run_heed("attend --word hare --layer 4 --head 1" + text).out, Not(HasSubstr(said)));
}

TEST(Terminal, SaysBlockForALayer) {
  for (const char* const command : {"attend 'A mole dug'", "heads 'A mole dug'"}) {
    const std::string out = run_heed(command).out;
    EXPECT_THAT(out, HasSubstr("6 blocks")) << command;
    EXPECT_THAT(out, Not(ContainsRegex("[Ll]ayer"))) << command;
  }
}

TEST(Tour, OfOneWordHasNoEdge) {
  const Json word = json_of("tour --json -n 1 Mole")["word"];
  EXPECT_TRUE(word["edge"].is_null());
  EXPECT_EQ(word["layer"], 0);
}

TEST(Tour, ShowsItsSteps) {
  const Json document = json_of("tour --json 'A mole dug' -n 5 " + with_model());
  for (const char* key : {"tokens", "next", "heads", "word", "continuation"}) {
    EXPECT_TRUE(document.contains(key)) << key;
  }
}

}  // namespace
}  // namespace heed
