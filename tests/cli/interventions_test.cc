// Every verb of interventions in the terminal, of a decoder and of a translator, beside the edits
// of the library.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"
#include "engine/edits.h"
#include "engine/loaded_model.h"
#include "formats/model_files.h"
#include "microscope/toy_pairs.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/recorded_pass.h"

namespace heed::terminal_verb_tests {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;

// A model as commands are given it, and a head of it.
struct Spoken {
  std::string call;          // "-m DIRECTORY TEXT"
  std::string other;         // a text of as many tokens, as options are given it
  std::string where;         // "L1H2"
  std::string site;          // "self", "cross"
  std::string mask;          // "self=none"
  const Transformer& model;  // and what the library reads
  WordsOf words;
  Texts texts, others;
};

struct Verb {
  std::string options;
  Edit edit;
};

std::vector<Verb> verbs(const Spoken& spoken, const std::string& file, const Edit& mask) {
  const std::string& where = spoken.where;
  const std::vector<float> vector{1, -2, 3, 0.5F, 0, 0, 1, 2};
  return {{"--ablate " + where, {where, SetZero{}}},
          {"--mean " + where, {where, SetMean{{spoken.texts}}}},
          {fmt::format("--mean {} --mean-text {}", where, spoken.other),
           {where, SetMean{{spoken.others}}}},
          {fmt::format("--scale {}=-1.5", where), {where, ScaleBy{-1.5F}}},
          {fmt::format("--add {}={}", where, file), {where, AddVector{vector}}},
          {fmt::format("--steer {}=2 --steer-to {}", where, spoken.other),
           {where, SteerBy{2.0F, spoken.others}}},
          {fmt::format("--replace {}@1 --replace-text {}", where, spoken.other),
           {where + "@1", TakeFromText{spoken.others}}},
          {fmt::format("--freeze {} --freeze-text {}", where, spoken.other),
           {where, FreezePattern{spoken.others}}},
          {fmt::format("--cut '{}:2>1'", where), {where, CutEdges{{{2, 1}}}}},
          {fmt::format("--cut '{}:2>1' --renormalise", spoken.site),
           {spoken.site, CutEdges{{{2, 1}}, CutEdges::Rest::renormalised}}},
          {fmt::format("--cut-words '{}:2>0'", where), {where, CutWords{spoken.texts, 2, 0}}},
          {"--mask " + spoken.mask, mask}};
}

// The extremes and the mean of an array, as `heed trace --json` says them.
void expect_described(const Json& array, const Tensor<float>& values) {
  double sum = 0;
  for (const float value : values.span()) sum += value;
  const auto [least, largest] = std::ranges::minmax(values.span());
  // Printed with at least six digits.
  const auto near = [](const Json& said, double value) {
    EXPECT_NEAR(said.get<double>(), value, 1e-5 * (1 + std::abs(value)));
  };
  near(array["min"], least);
  near(array["max"], largest);
  near(array["mean"], sum / static_cast<double>(values.size()));
}

void expect_same_as_library(const Spoken& spoken, const std::vector<Point>& points,
                            const Edit& mask) {
  const testing::TemporaryDirectory directory;
  const std::string file = (directory / "vector.json").string();
  write_text_file(file, "[1, -2, 3, 0.5, 0, 0, 1, 2]");
  for (const Verb& verb : verbs(spoken, file, mask)) {
    SCOPED_TRACE(verb.options);
    std::string names;
    for (const Point& point : points) names += (names.empty() ? "" : ",") + point_name(point);
    const Json document =
        json_of(fmt::format("trace --json --points {} {} {}", names, spoken.call, verb.options));
    const auto editor = std::make_shared<Interventions>(
        spoken.model.architecture(), resolve_edits(spoken.model, {verb.edit}, spoken.words));
    Capture changed(points), plain(points);
    observe_pass(spoken.model.with_editor(editor), spoken.texts, changed);
    observe_pass(spoken.model, spoken.texts, plain);
    ASSERT_EQ(document["arrays"].size(), points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      expect_described(document["arrays"][i], changed.at(points[i]));
    }
    EXPECT_FALSE(
        std::ranges::equal(changed.at(points.back()).span(), plain.at(points.back()).span()));
  }
}

TEST(TerminalInterventions, OfADecoderAreTheLibrarys) {
  const LoadedModel model = load_model(testing::model_directory().string());
  const std::vector<std::int32_t> ids = model.encode("The queen and the wizard");
  std::vector<std::int32_t> tokens(ids.rbegin(), ids.rend());
  std::string list;
  for (const std::int32_t id : tokens) list += (list.empty() ? "" : ",") + std::to_string(id);
  expect_same_as_library({.call = "--tokens " + list + " " + testing::with_model(),
                          .other = "'The queen and the wizard'",
                          .where = "L1H2",
                          .site = "self",
                          .mask = "self=none",
                          .model = model.transformer,
                          .words = words_of(model),
                          .texts = {.target = tokens},
                          .others = {.target = ids}},
                         {{PointKind::mixed_values, 1}, {PointKind::residual_post, 1}},
                         {"self", SetMask{SetMask::Kind::none}});
}

TEST(TerminalInterventions, OfATranslatorAreTheLibrarys) {
  const testing::TemporaryDirectory directory;
  const std::unique_ptr<Tokenizer> tokenizer = load_model_tokenizer("starter");
  Architecture architecture = testing::toy_pair_architecture({});
  for (StackSpecification& stack : architecture.stacks) {
    stack.vocabulary_size = tokenizer->vocabulary_size();
    stack.end_of_text = 0;
  }
  architecture.decoder_start = 1;
  save_transformer(testing::toy_translator(architecture), directory / "toy",
                   {{{tokenizer_file_name, tokenizer->to_json()}}});
  const LoadedModel model =
      load_translator((directory / "toy").string(), {}, TokenizerNeed::optional);
  const std::string source = "the queen met the mole", target = "one fluffy day";
  const Texts texts{.source = model.encode_source(source), .target = model.encode_target(target)};
  const std::string other = "the mole met the queen ||| one day fluffy";
  Spoken spoken{.call = fmt::format("-t 1 -m {} '{}' --target '{}'", (directory / "toy").string(),
                                    source, target),
                .other = "'" + other + "'",
                .where = "cross.L1H2",
                .site = "cross",
                .mask = "encoder=causal",
                .model = model.transformer,
                .words = words_of(model),
                .texts = texts,
                .others = {.source = model.encode_source("the mole met the queen "),
                           .target = model.encode_target(" one day fluffy")}};
  const std::vector<Point> points{{PointKind::cross_mixed_values, 1, StackSite::decoder},
                                  {PointKind::residual_post, 1, StackSite::decoder}};
  expect_same_as_library(spoken, points, {"encoder", SetMask{}});
  // Without a target, the other text is the model's own translation.
  const Texts alone = translated_pair(model, model.encode_source(source)).tokens;
  const Json document = json_of(fmt::format(
      "trace --json --points decoder.1.cross_attn.hook_z {} --mean cross.L1H2 --mean-text '{}'",
      spoken.call, source));
  const auto editor = std::make_shared<Interventions>(
      model.architecture(), resolve_edits(model.transformer, {{"cross.L1H2", SetMean{{alone}}}}));
  Capture changed(std::vector<Point>{points.front()});
  observe_pass(model.transformer.with_editor(editor), texts, changed);
  expect_described(document["arrays"][0], changed.at(points.front()));

  // Every sentence that is translated is changed alike.
  const std::string translate = fmt::format(
      "translate --json --beams 1 -n 6 -t 1 -m {} --ablate decoder.L1 --mask encoder=causal",
      (directory / "toy").string());
  const auto ablated = std::make_shared<Interventions>(
      model.architecture(),
      resolve_edits(model.transformer, {{"decoder.L1", SetZero{}}, {"encoder", SetMask{}}}));
  const std::string lines = (directory / "lines.txt").string();
  write_text_file(lines, source + "\nthe mole\n");
  const Json translated = json_of(translate + " --text " + lines);
  ASSERT_EQ(translated["translations"].size(), 2U);
  for (const Json& each : translated["translations"]) {
    const GreedyTranslation greedy = translate_greedily(
        model.transformer, model.encode_source(each["source"].get<std::string>()),
        {.max_length = 6, .editor = ablated.get()});
    EXPECT_EQ(each["hypotheses"][0]["tokens"].size(),
              greedy.tokens.size() + (greedy.is_finished() ? 1 : 0));
    EXPECT_NEAR(each["hypotheses"][0]["log_probability"].get<double>(), greedy.log_probability,
                1e-3);
  }
  EXPECT_THAT(run_heed(translate + " '" + source + "' --mean cross.L1H2").err,
              HasSubstr("--mean-text"));
}

TEST(TerminalInterventions, ChangeWhatAttendShows) {
  const std::string call =
      "attend --json --tokens 5,17,4 --layer 1 --head 2 " + testing::with_model();
  const Json plain = json_of(call), changed = json_of(call + " --cut 'L1H2:2>1'");
  EXPECT_EQ(changed["changed"], "cut L1H2:2>1");
  EXPECT_FALSE(plain.contains("changed"));
  EXPECT_GT(plain["pattern"][2][1].get<double>(), 0);
  EXPECT_EQ(changed["pattern"][2][1].get<double>(), 0);
  EXPECT_EQ(changed["pattern"][1], plain["pattern"][1]);
  const Json open = json_of(call + " --mask L1H2=none");
  EXPECT_GT(open["pattern"][0][2].get<double>(), 0);
}

TEST(TerminalInterventions, RefuseWithTheReason) {
  const auto refused = [](const std::string& options, const std::string& says) {
    const Outcome outcome = run_heed("attend --tokens 5,17,4 " + testing::with_model() + options);
    EXPECT_NE(outcome.status, 0) << options;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << options;
  };
  refused("--mask L1H2=causal", "a causal mask already");
  refused("--mask L1H2=full", "causal or none");
  refused("--mask L1H2", "not POINT=VALUE");
  refused("--cut-words 'L1H2:9>0'", "word 9");
  refused("--cut 'L1H2:9>0'", "position 9");
  refused("--renormalise", "needs --cut");
  refused("--ablate cross.L1H2", "cross.L1H2");
}

}  // namespace
}  // namespace heed::terminal_verb_tests
