// heed attend, trace, lens and patch of a translator.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"
#include "cli/run_heed.h"
#include "engine/loaded_model.h"
#include "formats/model_files.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/patch/patch.h"
#include "microscope/toy_pairs.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;

constexpr const char* source_text = "the queen met the mole";
constexpr const char* target_text = "one fluffy day";

// A random translator that speaks with the starter's tokens, saved for the program's life.
class PairCommands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new testing::TemporaryDirectory;
    const std::unique_ptr<Tokenizer> tokenizer = load_model_tokenizer("starter");
    Architecture architecture = testing::toy_pair_architecture({});
    for (StackSpecification& stack : architecture.stacks) {
      stack.vocabulary_size = tokenizer->vocabulary_size();
      stack.end_of_text = 0;
    }
    architecture.decoder_start = 1;
    save_transformer(testing::toy_translator(architecture), *directory_ / "toy",
                     {{{tokenizer_file_name, tokenizer->to_json()}}});
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string model() { return "-t 1 -m " + (*directory_ / "toy").string() + " "; }
  static std::string texts() {
    return model() + "'" + source_text + "' --target '" + target_text + "' ";
  }
  static testing::TemporaryDirectory* directory_;
};
testing::TemporaryDirectory* PairCommands::directory_ = nullptr;

TEST_F(PairCommands, AttendSaysWhatThePassHas) {
  const LoadedModel loaded =
      load_translator((*directory_ / "toy").string(), {}, TokenizerNeed::optional);
  const RecordedPass pass(loaded.transformer,
                          {loaded.encode_source(source_text), loaded.encode_target(target_text)});
  const Json all = json_of("attend --json " + texts());
  EXPECT_EQ(all["heads"].size(), 12U + 8U + 8U);
  EXPECT_FALSE(all["target"]["is_translation"].get<bool>());
  EXPECT_EQ(all["target"]["tokens"].size(), static_cast<std::size_t>(pass.positions()));
  for (const char* const kind : {"encoder", "decoder", "cross"}) {
    const Json head =
        json_of(fmt::format("attend --json --kind {} --layer 1 --head 2 {}", kind, texts()));
    const Tensor<float> plane =
        RecordedAttention(pass).pattern(*site_named(kind, pass.architecture()), 1, 2);
    ASSERT_EQ(head["pattern"].size(), static_cast<std::size_t>(plane.shape()[0])) << kind;
    for (std::int64_t t = 0; t < plane.shape()[0]; ++t) {
      for (std::int64_t s = 0; s < plane.shape()[1]; ++s) {
        EXPECT_NEAR(
            head["pattern"][static_cast<std::size_t>(t)][static_cast<std::size_t>(s)].get<float>(),
            plane.view()(t, s), 1e-6);
      }
    }
  }
  const Json word = json_of("attend --json --word fluffy --layer 1 --head 2 " + texts());
  double sum = 0;
  for (const Json& weight : word["walk"]["cross"]) sum += weight.get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
  const Json translated = json_of("attend --json --top 3 " + model() + "'" + source_text + "'");
  EXPECT_TRUE(translated["target"]["is_translation"].get<bool>());
  EXPECT_EQ(translated["heads"].size(), 3U);
}

TEST_F(PairCommands, AttendDrawsEveryView) {
  for (const int columns : {80, 120}) {
    for (const char* const view :
         {"", "--kind cross", "--kind cross --layer 0 --head 1",
          "--kind encoder --layer 0 --head 1 --words", "--word fluffy",
          "--word queen --kind encoder", "--top 4",
          "--cut 'cross:1>2' --ablate encoder.L0H1 --renormalise", "--mask encoder=causal"}) {
      const Outcome outcome = run_heed(fmt::format("attend {} {}", view, texts()),
                                       fmt::format("COLUMNS={} NO_COLOR=1", columns));
      EXPECT_EQ(outcome.status, 0) << view << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr("queen")) << view;
      EXPECT_THAT(outcome.out, HasSubstr("fluffy")) << view;
    }
  }
}

// One set of statistics at every kind of attention; what a kind has not is null.
TEST_F(PairCommands, AttendSaysWhichStatisticsAKindHas) {
  const Json all = json_of("attend --json " + texts());
  for (const Json& head : all["heads"]) {
    const bool is_cross = head["site"] == "cross", is_encoder = head["site"] == "encoder";
    EXPECT_TRUE(head["largest"].is_number() && head["last"].is_number());
    EXPECT_EQ(head["self"].is_null(), is_cross);
    EXPECT_EQ(head["induction"].is_null(), is_cross);
    EXPECT_EQ(head["next"].is_null(), !is_encoder);
    EXPECT_EQ(head["content_weight"].is_null(), is_cross || is_encoder);
  }
}

TEST_F(PairCommands, AttendSaysWhatChanges) {
  const Json changed = json_of("attend --json --cut 'cross.L1:1>2' " + texts());
  const Json& effect = changed["effect"];
  EXPECT_EQ(effect[0]["moved"].get<double>(), 0);
  EXPECT_GT(effect[1]["moved"].get<double>(), 0);
  EXPECT_EQ(effect[2]["moved"].get<double>(), 0);
  EXPECT_EQ(changed["changed"], "cut cross.L1:1>2");
}

TEST_F(PairCommands, TraceWritesPointsOfBothStacks) {
  const std::string file = (*directory_ / "pair.safetensors").string();
  const Json document = json_of(
      "trace --json --points cross.pattern1,encoder.resid_pre,decoder.0.attn.hook_q --heads 2 "
      "--out " +
      file + " " + texts());
  EXPECT_EQ(document["arrays"].size(), 3U + 1U + 1U);
  const SafetensorsFile written = SafetensorsFile::open(file);
  const auto sources = static_cast<std::int64_t>(document["source"]["tokens"].size());
  const auto targets = static_cast<std::int64_t>(document["target"]["tokens"].size());
  ASSERT_NE(written.find("decoder.1.cross_attn.hook_pattern"), nullptr);
  EXPECT_EQ(written.find("decoder.1.cross_attn.hook_pattern")->shape,
            (Shape{1, 1, targets, sources}));
  EXPECT_EQ(written.find("encoder.2.hook_resid_pre")->shape, (Shape{1, sources, 32}));
  EXPECT_NE(written.find("source_tokens"), nullptr);
}

// Gradients at points of both stacks, of a logit and of the loss of the target.
TEST_F(PairCommands, TraceExportsGradients) {
  const Json loss = json_of(
      "trace --json --points encoder.0.hook_resid_pre_grad,cross.pattern1_grad,logits_grad " +
      texts());
  ASSERT_EQ(loss["arrays"].size(), 3U);
  const Json logit =
      json_of("trace --json --points encoder.0.hook_resid_pre_grad --logit '#9' --against '#11' " +
              texts());
  ASSERT_EQ(logit["arrays"].size(), 1U);
  const Json& of_loss = loss["arrays"][0];
  const Json& of_logit = logit["arrays"][0];
  EXPECT_EQ(of_logit["name"], of_loss["name"]);
  EXPECT_EQ(of_logit["shape"], of_loss["shape"]);
  EXPECT_NE(of_logit["max"], of_loss["max"]);
  EXPECT_GT(of_logit["max"].get<double>(), 0);
  EXPECT_EQ(run_heed("trace --points encoder.resid_pre --logit '#9' " + texts()).status, 2);
}

// The last row of the lens is the model's own prediction of the target's next token.
TEST_F(PairCommands, LensLooksThroughTheDecoder) {
  const LoadedModel loaded =
      load_translator((*directory_ / "toy").string(), {}, TokenizerNeed::optional);
  const RecordedPass pass(loaded.transformer,
                          {loaded.encode_source(source_text), loaded.encode_target(target_text)});
  const Json lens = json_of("lens --json --token '#9' " + texts());
  EXPECT_EQ(lens["followed"]["id"], 9);
  const Json& layers = lens["layers"];
  ASSERT_EQ(std::ssize(layers), pass.architecture().decoder().layers + 1);
  EXPECT_EQ(layers[0]["point"], "decoder.0.hook_resid_pre");
  ASSERT_EQ(std::ssize(layers.back()["positions"]), pass.positions());
  for (std::int64_t t = 0; t < pass.positions(); ++t) {
    const Json& cell = layers.back()["positions"][static_cast<std::size_t>(t)];
    EXPECT_NEAR(cell["probability"].get<double>(), pass.next_probabilities(t)[9], 1e-6);
  }
  const Json changed = json_of("lens --json --ablate cross.L1 " + texts());
  EXPECT_EQ(changed["interventions"], "ablate cross.L1");
  EXPECT_NE(changed["layers"].back(), json_of("lens --json " + texts())["layers"].back());
  const Outcome drawn = run_heed("lens " + texts());
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("by the logit lens"));
  const Outcome refused = run_heed("lens --residual " + texts());
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("one stack"));
}

TEST_F(PairCommands, PatchSaysWhatTheSweepFinds) {
  const LoadedModel loaded =
      load_translator((*directory_ / "toy").string(), {}, TokenizerNeed::optional);
  const Texts texts{loaded.encode_source(source_text), loaded.encode_target(target_text)};
  PatchRequest request{.clean = texts, .corrupted = texts};
  request.corrupted.source[2] = 9;
  std::string ids;
  for (const std::int32_t id : request.corrupted.source) ids += fmt::format("{},", id);
  ids.pop_back();
  const std::string call =
      fmt::format("patch {} --clean '{}' --corrupted-tokens {} ", model(), source_text, ids);
  const std::string with_target = call + "--target '" + target_text + "' ";
  const std::string answers = "--answer '#7' --wrong '#8' ";
  request.metric = {.answer = 7, .wrong = 8};
  for (const char* const kind : {"encoder", "decoder", "cross"}) {
    for (const char* const grid : {"attn_head_v_by_pos", "attn_head_out", "edge_cut"}) {
      const bool is_edge = std::string(grid) == "edge_cut";
      request.site = kind;
      request.grid = patch_grid_from_name(grid);
      request.layer = 1;
      request.head = 2;
      const PatchResult expected = patch_sweep(loaded.transformer, request);
      const Json found = json_of(
          with_target + answers +
          fmt::format("--json --kind {} --grid {} {}", kind, grid, is_edge ? "--head L1H2" : ""));
      EXPECT_EQ(found["site"], kind);
      EXPECT_EQ(found["clean_tokens"].size(), request.clean.source.size());
      EXPECT_EQ(found["clean_target"].size(), request.clean.target.size());
      EXPECT_EQ(found["answer"]["id"], 7);
      EXPECT_EQ(found["clean"].get<double>(), expected.clean);
      ASSERT_EQ(std::ssize(found["rows"]), expected.rows);
      ASSERT_EQ(std::ssize(found["columns"]), expected.columns);
      for (std::int64_t row = 0; row < expected.rows; ++row) {
        for (std::int64_t column = 0; column < expected.columns; ++column) {
          const Json& value =
              found["values"][static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
          if (value.is_null()) {
            EXPECT_TRUE(std::isnan(expected.value(row, column)));
          } else {
            EXPECT_EQ(value.get<double>(), expected.value(row, column)) << kind << ' ' << grid;
          }
        }
      }
    }
  }
  EXPECT_EQ(json_of(with_target + answers + "--json --kind cross --grid edge --head cross.L1H2"),
            json_of(with_target + answers + "--json --kind cross --grid edge --head L1H2"));
  const std::string svg = (*directory_ / "grid.svg").string();
  const Outcome drawn = run_heed(with_target + answers + "-o " + svg);
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("Patching resid_pre of encoder"));
  EXPECT_THAT(read_text_file(svg), HasSubstr("fluffy"));

  const auto refuses = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = run_heed(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << arguments;
  };
  refuses(with_target + answers + "--kind cross", "the site encoder or decoder");
  refuses(with_target + answers + "--kind cross --grid edge --head encoder.L1H2", "did you mean");
  refuses(with_target + answers + "--dtype int8", "one stack");
  refuses(with_target + answers + "--corrupted-target one", "target has");
  refuses(call + answers + "--corrupted-target one", "needs --target");
  refuses("patch -m starter --clean a --corrupted b --kind cross --metric kl", "one stack");
}

// Without a target and answers: what both translations begin with, and how they go on.
TEST_F(PairCommands, PatchFindsWhereTwoTranslationsPart) {
  const Json found = json_of(
      "patch -t 1 -m translator --json --clean 'The cat sees the dog.' --corrupted 'The cat sees "
      "the bird.'");
  const LoadedModel loaded = load_translator("translator", {}, TokenizerNeed::optional);
  const auto translated = [&](const char* text) {
    return translated_pair(loaded, loaded.encode_source(text)).tokens.target;
  };
  const auto clean = translated("The cat sees the dog.");
  const auto corrupted = translated("The cat sees the bird.");
  const std::size_t shared = found["clean_target"].size();
  ASSERT_LT(shared, clean.size());
  EXPECT_TRUE(std::equal(clean.begin(), clean.begin() + static_cast<std::ptrdiff_t>(shared),
                         corrupted.begin()));
  EXPECT_EQ(found["answer"]["id"], clean[shared]);
  EXPECT_EQ(found["wrong"]["id"], corrupted[shared]);
  EXPECT_NE(clean[shared], corrupted[shared]);
  EXPECT_GT(found["clean"].get<double>(), 0);
  EXPECT_LT(found["corrupted"].get<double>(), 0);
  const Outcome same = run_heed(
      "patch -t 1 -m translator --clean 'The cat sees the dog.' --corrupted 'The cat sees the "
      "dog.'");
  EXPECT_EQ(same.status, 2);
  EXPECT_THAT(same.err, HasSubstr("give --target"));
}

TEST_F(PairCommands, TakeTokenIdsWhereThereIsNoTokenizer) {
  const std::string bare = (*directory_ / "bare").string();
  std::filesystem::copy(*directory_ / "toy", bare);
  std::filesystem::remove(std::filesystem::path(bare) / tokenizer_file_name);
  const Json document =
      json_of("attend --json --top 1 --tokens 5,9,12,0 --target-tokens 1,6,3 -t 1 -m " + bare);
  EXPECT_EQ(document["source"]["tokens"][1]["text"], "#9");
  EXPECT_EQ(document["target"]["words"].size(), 3U);
  const Outcome outcome = run_heed("attend 'a text' -t 1 -m " + bare);
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("give token ids"));
}

TEST_F(PairCommands, RefuseWithTheReason) {
  const auto refuses = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = run_heed(arguments);
    EXPECT_NE(outcome.status, 0) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
  };
  refuses("attend -m starter 'a text' --target b", "need a translator");
  refuses("attend -m starter 'a text' --kind cross", "needs a translator");
  refuses("trace -m starter 'a text' --target b --points q", "need a translator");
  refuses("attend --kind other " + texts(), "none of encoder, decoder and cross");
  refuses("attend --layer 2 --head 0 " + texts(), "layers 0 to 1");
  refuses("attend --kind cross --layer 0 --head 4 " + texts(), "heads 0 to 3");
  refuses("attend --word mole " + texts(), "--kind encoder looks in the source");
  refuses("attend --ablate L0H1 " + texts(), "cross.L0H1");
  refuses("attend --cut 'cross:1>90' " + texts(), "1>90");
  refuses("attend --renormalise " + texts(), "needs --cut");
  refuses("trace --points resid_pre_grad " + texts(), "did you mean 'encoder.resid_pre'");
  refuses("trace --points q -n 2 " + texts(), "not for translators");
  refuses("trace --points cross.z --replace encoder.L0H1 " + texts(), "--replace-text");
  refuses("attend " + model() + "'' --target x", "the source is empty");
}

}  // namespace
}  // namespace heed
