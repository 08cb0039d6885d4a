// The examples of the starter model hold: what is committed is what the claims measure to.
#include <gtest/gtest.h>

#include <sstream>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "engine/embedded_files.h"
#include "engine/measured_examples.h"
#include "microscope/attention/text_words.h"
#include "microworld/checks/evidence_check.h"
#include "server/explorer_support.h"

namespace heed::server {
namespace {

using heed::testing::expect_error;
using testing::starter_explorer;
using testing::TestExplorer;

const LoadedModel& starter() { return starter_explorer().model(); }

Json claims() {
  return parse_json(
      read_text_file(std::filesystem::path(HEED_SOURCE_DIR) / "models/starter/claims.json"),
      "claims.json");
}

const Json& committed() {
  static const Json examples = parse_json(starter_files()->examples, "examples.json");
  return examples;
}

// Of the next token after the text, as the page asks for it.
double probability(const std::string& text, const std::string& token, const Json& interventions) {
  TestExplorer& explorer = starter_explorer();
  const std::string id = explorer.trace(text, interventions);
  const Json next =
      explorer.get(fmt::format("/api/traces/{}/next?position=-1&limit={}", id,
                               starter().transformer.specification().vocabulary_size));
  for (const Json& candidate : next["candidates"]) {
    if (candidate["token"].get<std::string>() == token)
      return candidate["probability"].get<double>();
  }
  ADD_FAILURE() << "no token '" << token << "'";
  return 0;
}

void expect_near(const Json& measured, const Json& said, const std::string& where) {
  ASSERT_EQ(measured.type(), said.type()) << where;
  if (said.is_number_float()) {
    EXPECT_NEAR(measured.get<double>(), said.get<double>(), 0.002) << where;
  } else if (said.is_structured()) {
    ASSERT_EQ(measured.size(), said.size()) << where;
    for (auto& [key, value] : said.items()) {
      if (key == "note") continue;  // says the same figures, rounded
      expect_near(said.is_array() ? measured[std::stoul(key)] : measured[key], value,
                  where + "/" + key);
    }
  } else {
    EXPECT_TRUE(measured == said) << where << ": " << measured << ", not " << said;
  }
}

TEST(StarterExamples, AreWhatTheClaimsMeasureTo) {
  const Json measured = parse_json(measure_examples(starter(), claims()).dump(), "measured");
  expect_near(measured, committed(), "");
}

// The measurement and the page's interface are written apart.
TEST(StarterExamples, SayWhatTheServerAnswers) {
  TestExplorer& explorer = starter_explorer();
  for (const Json& example : committed()) {
    const std::string text = example["text"];
    const std::string id = explorer.trace(text);
    const std::vector<TextWord> words = words_of(starter().token_bytes(starter().encode(text)));
    const std::int64_t query = find_word(words, example["word"].get<std::string>()).last();
    for (const Json& weight : example["weights"]) {
      const auto row =
          explorer.array(fmt::format("/api/traces/{}/attention/self/{}/{}/rows/{}", id,
                                     weight["layer"].get<int>(), weight["head"].get<int>(), query));
      const double share = weight["share"];
      const std::string attended = weight["attended"];
      EXPECT_TRUE(std::ranges::any_of(words, [&](const TextWord& word) {
        if (word.text != attended || word.begin > query) return false;
        double sum = 0;
        for (std::int64_t t = word.begin; t < std::min(word.end, query + 1); ++t) {
          sum += row.values[static_cast<std::size_t>(t)];
        }
        return std::abs(sum - share) < 0.002;
      })) << example["id"];
    }
    for (const Json& trial : example["trials"]) {
      const std::string token = trial["token"];
      EXPECT_NEAR(probability(text, token, Json::array()), trial["before"].get<double>(), 0.002);
      if (!trial.contains("edges")) continue;
      const Json cut = Json::array({{{"kind", "cut"},
                                     {"layer", trial["layer"]},
                                     {"head", trial["head"]},
                                     {"edges", trial["edges"]},
                                     {"renormalise", true}}});
      EXPECT_NEAR(probability(text, token, cut), trial["after"].get<double>(), 0.002);
      EXPECT_NEAR(probability(text, trial["instead"]["token"], cut),
                  trial["instead"]["after"].get<double>(), 0.002);
    }
  }
}

TEST(StarterExamples, TrialsTakeAtLeastHalfAway) {
  for (const Json& example : committed()) {
    EXPECT_FALSE(example["trials"].empty()) << example["id"];
    for (const Json& trial : example["trials"]) {
      EXPECT_LE(trial["after"].get<double>(), trial["before"].get<double>() / 2) << example["id"];
    }
  }
}

TEST(StarterExamples, LinksReplaceTheirWord) {
  const Json listed = starter_explorer().get("/api/model")["examples"];
  ASSERT_EQ(listed.size(), committed().size());
  int replaced = 0;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    for (std::size_t j = 0; j < listed[i]["trials"].size(); ++j) {
      const Json& trial = committed()[i]["trials"][j];
      const std::string changes = listed[i]["trials"][j]["changes"];
      if (trial.contains("edges")) {
        const Json edge = trial["edges"][0];
        EXPECT_EQ(changes.substr(0, changes.find(';')),
                  fmt::format("L{}H{}:{}>{}", trial["layer"].get<int>(), trial["head"].get<int>(),
                              edge[0].get<int>(), edge[1].get<int>()));
        EXPECT_EQ(listed[i]["trials"][j]["cuts"], "renormalise");
        continue;
      }
      std::istringstream all(changes);
      std::size_t token = 0;
      for (std::string change; std::getline(all, change, ';'); ++token) {
        int position = 0, id = 0;
        ASSERT_EQ(std::sscanf(change.c_str(), "@%d=%d", &position, &id), 2) << changes;
        EXPECT_EQ(position, trial["tokens"][token]["position"].get<int>());
        EXPECT_EQ(starter().token_bytes(id),
                  (position > 0 ? " " : "") + trial["tokens"][token]["by"].get<std::string>());
      }
      ++replaced;
    }
  }
  EXPECT_GT(replaced, 10);
}

// The captions name what the head reads: the evidence, which the claim replaces, and not a word
// beside it.
TEST(StarterExamples, AreShownByTheHeadThatAttendsToTheEvidence) {
  int early = 0, deciding = 0;
  for (const Json& example : committed()) {
    const Json weight = example["weights"][0];
    EXPECT_EQ(example["layer"], weight["layer"]) << example["id"];
    EXPECT_EQ(example["head"], weight["head"]);
    EXPECT_GE(weight["share"].get<double>(), 1.5 * weight["even"].get<double>());
    early += weight["layer"] == 0;
    deciding += weight["decides"].get<bool>();
    const std::string note = example["note"];
    EXPECT_NE(note.find("“" + weight["attended"].get<std::string>() + "” with"), std::string::npos)
        << note;
    EXPECT_EQ(
        note.find("No single edge decides") == std::string::npos || example["weights"].size() > 1,
        weight["decides"].get<bool>() || example["weights"].size() > 1)
        << note;
  }
  EXPECT_LT(early, static_cast<int>(committed().size()) / 2);
  EXPECT_GE(deciding, 3);
}

// What takes the place of the culprit without the clue is another suspect, not what broken grammar
// brings.
TEST(StarterExamples, TheMysteryNamesAnotherSuspectWithoutItsClue) {
  const Json mystery = committed().back();
  ASSERT_EQ(mystery["id"], "mystery");
  for (const Json& trial : mystery["trials"]) {
    const std::string instead = trial["instead"]["token"];
    EXPECT_TRUE(instead == " gardener" || instead == " poet") << trial;
  }
}

Json first_claim_with(const char* key, const char* value) {
  Json changed = Json::array({claims()[0]});
  changed[0]["claims"][0][key] = value;
  return changed;
}

// Over variants of the showcases: other evidence takes the answer away and brings the one that is
// right after it; other words for the same evidence leave it.
TEST(StarterExamples, FollowTheEvidenceInManyVariants) {
  const auto checks = check_evidence(starter().transformer, starter().require_tokenizer(),
                                     {.variants = 12,
                                      .choosing = 1,
                                      .max_heads = 0,
                                      .subjects = {"bank/river", "culprit", "deed", "mole/animal"},
                                      .seed = 5});
  for (const EvidenceCheck& check : checks) {
    SCOPED_TRACE(check.subject);
    EXPECT_LT(check.replaced, check.probability / 4);
    EXPECT_GT(check.other_answer_replaced, 2 * check.other_answer);
    EXPECT_GT(check.other_answer_replaced, check.replaced);
    if (check.controls > 6) {
      EXPECT_GT(check.control_replaced, check.probability / 2);
    }
  }
}

// The murderer's name takes two hops, and only the clue says it.
TEST(StarterExamples, TheCulpritIsFoundByWhatTheClueHasRead) {
  const auto checks = check_evidence(
      starter().transformer, starter().require_tokenizer(),
      {.variants = 3, .choosing = 1, .max_heads = 0, .subjects = {"culprit"}, .seed = 5});
  const EvidenceCheck& culprit = checks.front();
  EXPECT_GT(culprit.probability, 0.9);
  EXPECT_LT(culprit.replaced, 0.1);
  EXPECT_LT(culprit.isolated, 0.6);
  EXPECT_GT(culprit.others_isolated, 0.9);
  EXPECT_LT(culprit.right_by_depth[1], 0.5);
  EXPECT_NEAR(culprit.right_by_depth.back(), 1, 1e-9);
}

TEST(StarterExamples, AClaimThatTheModelDoesNotCarryIsRefused) {
  const auto refused = [](const Json& claims, const char* because) {
    expect_error(
        ErrorCode::not_found, [&] { measure_examples(starter(), claims); }, because);
  };
  refused(first_claim_with("attended", "one"), "no evidence for");
  // "Japanese" for "American" changes nothing of what a mole is.
  Json replaced = Json::array({claims()[3]});
  replaced[0]["claims"][0]["replace"] = {{"word", "American"}, {"by", "Japanese"}};
  refused(replaced, "only falls from");
  Json deep = Json::array({claims()[0]});
  deep[0]["claims"][0]["depth"] = true;
  deep[0]["claims"][0]["answer"] = " soft";
  deep[0]["claims"][0]["attended"] = "fluffy";
  EXPECT_THROW(measure_examples(starter(), deep), Error);
  expect_error(
      ErrorCode::corrupt_data, [] { measure_examples(starter(), Json::object()); }, "array");
}

// In another format, starter has its examples in its directory; a file that is not heed's is passed
// over, whatever it holds.
TEST(StarterExamples, AreReadBesideAModelAndNothingElseIs) {
  const heed::testing::TemporaryDirectory directory;
  const auto shown = [&](const std::string& text) {
    write_text_file(directory.path() / "examples.json", text);
    LoadedModel model = load_model("starter");
    model.embedded_name.clear();
    model.directory = directory.path();
    return TestExplorer(std::move(model)).get("/api/model")["examples"];
  };
  EXPECT_EQ(shown(committed().dump()), starter_explorer().get("/api/model")["examples"]);
  const Json general = shown("");
  EXPECT_EQ(general.at(0).at("id"), "question");
  for (const std::string member : {"text", "word", "weights", "trials", "note"}) {
    for (const Json& value : {Json(), Json(7), Json::array(), Json("x"), Json{{"a", 1}}}) {
      Json changed = committed();
      for (Json& example : changed) {
        if (example.contains("layer")) example[member] = value;
      }
      EXPECT_FALSE(shown(changed.dump()).empty()) << member << " " << value;
    }
  }
  for (const char* other : {"[3]", "{}", "[]", "[[]]", "null", "[{\"layer\": 0}]", "\xff"}) {
    EXPECT_EQ(shown(other), general) << other;
  }
}

}  // namespace
}  // namespace heed::server
