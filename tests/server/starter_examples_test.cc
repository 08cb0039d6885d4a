// What the examples of the starter model say is measured: each attended word, each intervention,
// and every percentage in a note.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "microscope/attention/text_words.h"
#include "server/explorer/examples.h"
#include "server/explorer_support.h"

namespace heed::server {
namespace {

using testing::starter_explorer;
using testing::TestExplorer;

const Example& example_named(std::string_view id) {
  return *std::ranges::find(starter_examples(), id, &Example::id);
}

std::vector<TextWord> words_of_text(std::string_view text) {
  const LoadedModel& model = starter_explorer().model();
  return words_of(model.token_bytes(model.encode(text)));
}

// Of the next token after the text.
double probability(std::string_view text, std::string_view token,
                   const Json& interventions = Json::array()) {
  TestExplorer& explorer = starter_explorer();
  const std::string id = explorer.trace(std::string(text), interventions);
  const Json next = explorer.get("/api/traces/" + id + "/next?position=-1&limit=1536");
  for (const Json& candidate : next["candidates"]) {
    if (candidate["token"] == std::string(token)) return candidate["probability"].get<double>();
  }
  ADD_FAILURE() << "no token '" << token << "'";
  return NAN;
}

std::string with_replaced_word(std::string_view text, const Trial& trial) {
  std::string changed(text);
  std::size_t at = changed.find(trial.replaced);
  for (std::int64_t seen = 1; seen < trial.occurrence; ++seen) {
    at = changed.find(trial.replaced, at + 1);
  }
  return changed.replace(at - 1, trial.replaced.size() + 1, trial.replacement);
}

double probability_after(const Example& example, const Trial& trial) {
  if (trial.change.empty()) {
    return probability(with_replaced_word(example.text, trial), trial.token);
  }
  const Json off{{"kind", "ablate"}, {"point", trial.change}};
  return probability(example.text, trial.token, Json::array({off}));
}

// What a head gives to each word of the text, from the last token of `word`.
struct WordWeights {
  std::vector<TextWord> words;
  std::vector<double> weights;
  std::int64_t visible = 0;  // tokens up to the query

  WordWeights(const Example& example, const AttentionClaim& claim)
      : words(words_of_text(example.text)) {
    TestExplorer& explorer = starter_explorer();
    const std::int64_t query = find_word(words, claim.word).last();
    const std::string id = explorer.trace(std::string(example.text));
    const auto row = explorer.array(
        fmt::format("/api/traces/{}/attention/{}/{}/rows/{}", id, claim.layer, claim.head, query));
    visible = query + 1;
    for (const TextWord& word : words) {
      double sum = 0;
      for (std::int64_t t = word.begin; t < std::min(word.end, visible); ++t) sum += row.values[t];
      weights.push_back(sum);
    }
  }

  double of(const TextWord& word) const { return weights[&word - words.data()]; }
};

double weight_of_claim(const Example& example, const AttentionClaim& claim) {
  const WordWeights row(example, claim);
  return row.of(find_word(row.words, claim.attended, claim.occurrence));
}

TEST(StarterExamples, AttendToEachWordThatTheyName) {
  for (const Example& example : starter_examples()) {
    EXPECT_FALSE(example.weights.empty()) << example.id;
    for (const AttentionClaim& claim : example.weights) {
      const WordWeights row(example, claim);
      const TextWord& attended = find_word(row.words, claim.attended, claim.occurrence);
      const double weight = row.of(attended);
      const double even =
          static_cast<double>(attended.end - attended.begin) / static_cast<double>(row.visible);
      EXPECT_GE(weight, std::min(3 * even, 0.6)) << example.id << " " << claim.attended;
      EXPECT_LE(std::ranges::count_if(row.weights, [&](double w) { return w > weight; }), 1)
          << example.id << " " << claim.attended;
    }
  }
}

TEST(StarterExamples, ShowTheirFirstClaim) {
  for (const Example& example : starter_examples()) {
    EXPECT_EQ(example.weights.front().layer, example.layer) << example.id;
    EXPECT_EQ(example.weights.front().head, example.head) << example.id;
    EXPECT_EQ(example.weights.front().word, example.word) << example.id;
  }
}

TEST(StarterExamples, TrialsTakeAtLeastHalfAway) {
  for (const Example& example : starter_examples()) {
    for (const Trial& trial : example.trials) {
      const double before = probability(example.text, trial.token);
      const double after = probability_after(example, trial);
      EXPECT_NEAR(before, trial.before, 0.001) << example.id << " " << trial.says;
      EXPECT_NEAR(after, trial.after, 0.001) << example.id << " " << trial.says;
      EXPECT_LE(after, before / 2) << example.id << " " << trial.says;
    }
  }
}

TEST(StarterExamples, LinksOfTrialsAreTheInterventions) {
  const Json listed = starter_explorer().get("/api/model")["examples"];
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const Example& example = starter_examples()[i];
    ASSERT_EQ(listed[i]["trials"].size(), example.trials.size());
    for (std::size_t j = 0; j < example.trials.size(); ++j) {
      const Trial& trial = example.trials[j];
      const std::string changes = listed[i]["trials"][j]["changes"];
      if (!trial.change.empty()) {
        EXPECT_EQ(changes, trial.change);
        continue;
      }
      const LoadedModel& model = starter_explorer().model();
      std::vector<std::int32_t> tokens = model.encode(example.text);
      int position = 0, id = 0;
      ASSERT_EQ(std::sscanf(changes.c_str(), "@%d=%d", &position, &id), 2) << changes;
      tokens[static_cast<std::size_t>(position)] = id;
      EXPECT_EQ(tokens, model.encode(with_replaced_word(example.text, trial)));
    }
  }
}

TEST(StarterExamples, ContrastsHold) {
  for (const Example& example : starter_examples()) {
    const Contrast& contrast = example.contrast;
    if (contrast.token.empty()) continue;
    const std::string_view other = example_named(contrast.other).text;
    EXPECT_NEAR(probability(example.text, contrast.token), contrast.share, 0.001) << example.id;
    EXPECT_NEAR(probability(other, contrast.token), contrast.other_share, 0.0002) << example.id;
  }
}

TEST(StarterExamples, NoHeadDoesAloneWhatManyDo) {
  for (const Example& example : starter_examples()) {
    if (example.most_by_one_head == 1) continue;
    double most = 0;
    for (int part = 0; part < 24; ++part) {
      const Json off{{"kind", "ablate"}, {"point", fmt::format("L{}H{}", part / 6, part % 6)}};
      const double left = probability(example.text, example.contrast.token, Json::array({off}));
      most = std::max(most, example.contrast.share - left);
    }
    EXPECT_LE(most, example.most_by_one_head) << example.id;
    EXPECT_GE(most, example.most_by_one_head / 2) << example.id;  // the note says "at most"
  }
}

// "96 %" is a number that was measured, rounded; "less than 0.1 %" is one below it.
TEST(StarterExamples, NotesHoldNoOtherPercentages) {
  for (const Example& example : starter_examples()) {
    std::vector<double> measured{example.contrast.share, example.contrast.other_share};
    for (const AttentionClaim& claim : example.weights) {
      measured.push_back(weight_of_claim(example, claim));
    }
    for (const Trial& trial : example.trials) {
      measured.push_back(trial.before);
      measured.push_back(trial.after);
    }
    const std::string note(example.note);
    const std::regex percentage("(less than )?([0-9]+)(\\.[0-9]+)? %");
    for (std::sregex_iterator found(note.begin(), note.end(), percentage), end; found != end;
         ++found) {
      const std::smatch& match = *found;
      const double said = std::stod(match[2].str() + match[3].str());
      const double half_digit = match[3].matched ? 0.05 : 0.5;
      EXPECT_TRUE(std::ranges::any_of(measured,
                                      [&](double share) {
                                        const double percent = 100 * share;
                                        return match[1].matched
                                                   ? percent > 0 && percent < said
                                                   : std::abs(percent - said) <= half_digit + 0.03;
                                      }))
          << example.id << ": " << match.str();
    }
  }
}

}  // namespace
}  // namespace heed::server
