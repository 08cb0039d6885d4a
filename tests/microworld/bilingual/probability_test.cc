// The probability of a German sentence given the English one is exact: sums over everything that
// small grammars can say are one, and reading pairs back gives what telling them gave.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "microworld/bilingual/bilingual.h"
#include "support/process.h"

namespace heed::microworld::bilingual {
namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();

// Goes through all derivations that are possible.
class AllDerivations final : public Chooser {
 public:
  std::size_t choose(const Choice& choice) override {
    if (depth_ == left_.size()) {
      std::vector<std::size_t> options;
      for (std::size_t option = choice.count; option-- > 0;) {
        if (choice.probability(option) > 0.0) options.push_back(option);
      }
      left_.push_back(std::move(options));
    }
    return left_[depth_++].back();
  }
  void wrote(std::string_view) override {}
  bool alive() const override { return true; }

  bool next() {
    while (!left_.empty()) {
      left_.back().pop_back();
      if (!left_.back().empty()) break;
      left_.pop_back();
    }
    depth_ = 0;
    return !left_.empty();
  }

 private:
  std::vector<std::vector<std::size_t>> left_;  // per choice: untried options, current one last
  std::size_t depth_ = 0;
};

// All that a grammar says: joint probabilities of English and German sentences.
struct Language {
  std::map<std::string, std::map<std::string, double>> pairs;
  std::size_t derivations = 0;
  double total = 0.0;
};

Language everything(const Grammar& grammar) {
  Language language;
  AllDerivations all;
  do {
    const Pair pair = tell_pair(all, all, grammar);
    const double probability = std::exp(pair.english_log_probability + pair.german_log_probability);
    language.pairs[pair.english.text][pair.german.text] += probability;
    language.total += probability;
    ++language.derivations;
  } while (all.next());
  return language;
}

void expect_exact(const Grammar& grammar, std::size_t min_sentences) {
  const Language language = everything(grammar);
  EXPECT_NEAR(language.total, 1.0, 1e-9);
  EXPECT_GE(language.pairs.size(), min_sentences);
  // Reading back takes longest: about 25 sentences are enough to find a wrong sum.
  const std::size_t step = std::max<std::size_t>(1, language.pairs.size() / 25);
  std::size_t examined = 0;
  for (const auto& [english, translations] : language.pairs) {
    double marginal = 0.0;
    for (const auto& [german, joint] : translations) marginal += joint;
    if (examined++ % step != 0) continue;
    double sum = 0.0;
    for (const auto& [german, joint] : translations) {
      const PairProbability read = pair_probability(english, german, grammar);
      EXPECT_NEAR(read.english, std::log(marginal), 1e-9) << english;
      EXPECT_NEAR(read.german_given_english, std::log(joint / marginal), 1e-9)
          << english << " " << german;
      sum += std::exp(read.german_given_english);
    }
    EXPECT_NEAR(sum, 1.0, 1e-9) << english;
  }
}

// A few words of the whole grammar, told in few ways.
class Small {
 public:
  Small() {
    add_nouns({"dog", "teacher"});
    add_adjectives({"happy", "old"});
    grammar_ = whole_grammar();
    grammar_.names = {};
    grammar_.times = {};
    grammar_.manners = {};
    grammar_.frequencies = {};
    grammar_.modals = {};
    Likelihoods& likely = grammar_.likelihoods;
    likely.kinds = {1.0, 0.0, 0.0, 0.0, 0.0};
    likely.forms = {0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0};
    likely.predicates = {1.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    likely.determiners = {1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    likely.pronouns = 0.0;
    likely.names = 0.0;
    likely.adjective = 0.0;
    likely.relative = 0.0;
    likely.negation = 0.0;
    likely.place = 0.0;
    likely.instrument = 0.0;
    likely.time = 0.0;
    likely.frequency = 0.0;
    likely.manner = 0.0;
  }

  void add_nouns(const std::vector<std::string>& words) { add(nouns_, all_nouns(), words); }
  void add_adjectives(const std::vector<std::string>& words) {
    add(adjectives_, all_adjectives(), words);
  }
  void set_verbs(const std::vector<std::string>& words) {
    verbs_.clear();
    add(verbs_, all_verbs(), words);
  }
  void add_noun(const Noun& noun) { nouns_.push_back(noun); }

  Likelihoods& likely() { return grammar_.likelihoods; }
  Grammar& grammar() {
    grammar_.nouns = nouns_;
    grammar_.adjectives = adjectives_;
    grammar_.verbs = verbs_;
    return grammar_;
  }

 private:
  template <class Row>
  static void add(std::vector<Row>& rows, std::span<const Row> all,
                  const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      for (const Row& row : all) {
        if (row.english == word) rows.push_back(row);
      }
    }
  }

  Grammar grammar_;
  std::vector<Noun> nouns_;
  std::vector<Adjective> adjectives_;
  std::vector<Verb> verbs_;
};

TEST(PairProbability, StatementsWithSynonymsAdjectivesAndNegation) {
  Small small;
  small.set_verbs({"sleep", "help"});
  small.likely().adjective = 0.3;
  small.likely().negation = 0.3;
  expect_exact(small.grammar(), 250);
}

TEST(PairProbability, TimesPlacesAndOrders) {
  Small small;
  small.set_verbs({"sleep"});
  small.add_nouns({"garden", "grandmother"});
  const std::array times = {TimePhrase{{"now/1", "jetzt/1", "nun/1"}, 1},
                            TimePhrase{{"yesterday/1", "gestern/1"}, 2}};
  small.grammar().times = times;
  small.likely().time = 0.5;
  small.likely().place = 0.5;
  small.likely().predicates = {0.7, 0.1, 0.0, 0.0, 0.1, 0.1};
  expect_exact(small.grammar(), 100);
}

TEST(PairProbability, ModalVerbsPerfectsAndQuestions) {
  Small small;
  small.set_verbs({"wait", "help"});
  small.add_nouns({"girl"});
  small.grammar().modals = whole_grammar().modals;
  small.likely().forms = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
  small.likely().kinds = {0.5, 0.5, 0.0, 0.0, 0.0};
  expect_exact(small.grammar(), 500);
}

TEST(PairProbability, TwoClausesWithPronouns) {
  Small small;
  small.set_verbs({"sleep", "hope", "ask"});
  small.likely().kinds = {0.0, 0.0, 0.0, 0.5, 0.5};
  small.likely().pronouns = 1.0;
  small.likely().determiners[1] = 0.0;
  small.likely().forms[2] = 0.0;
  expect_exact(small.grammar(), 500);
}

TEST(PairProbability, RelativeClauses) {
  Small small;
  small.set_verbs({"sleep", "help"});
  small.likely().relative = 0.5;
  small.likely().forms[2] = 0.0;
  small.likely().determiners[1] = 0.0;
  expect_exact(small.grammar(), 100);
}

// "The bank sleeps.": if both senses can sleep, nothing decides between them.
TEST(PairProbability, AmbiguousEnglishIsSummedOver) {
  Small small;
  small.set_verbs({"sleep"});
  const Classes living = classes::animal;
  small.add_noun({"bank", "banks", living, {{{"Bank", Gender::feminine, "Banken"}}}});
  small.add_noun({"bank", "banks", living, {{{"Ufer", Gender::neuter, "Ufer"}}}});
  const Grammar& grammar = small.grammar();
  expect_exact(grammar, 10);
  const PairProbability read = pair_probability("The bank sleeps.", "Das Ufer schläft.", grammar);
  EXPECT_EQ(read.english_derivations, 2U);
  EXPECT_NEAR(read.german_given_english, std::log(0.5), 1e-9);
}

TEST(PairProbability, ReadingPairsBackGivesTheirProbability) {
  const Bilingual world(11);
  const std::int64_t pairs = heed::testing::is_sanitized ? 24 : 120;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const Pair pair = world.pair(i);
    const PairProbability read = pair_probability(pair.english.text, pair.german.text);
    EXPECT_EQ(read.english_derivations, 1U) << pair.english.text;
    EXPECT_EQ(read.pair_derivations, 1U) << pair.english.text << " " << pair.german.text;
    EXPECT_NEAR(read.german_given_english, pair.german_log_probability, 1e-9);
    EXPECT_NEAR(read.english, pair.english_log_probability, 1e-9);
  }
}

TEST(PairProbability, ReadingPairsBackGivesTheirAlignment) {
  const Bilingual world(12);
  for (std::int64_t i = 0; i < 60; ++i) {
    const Pair pair = world.pair(i);
    const std::optional<Pair> read = read_pair(pair.english.text, pair.german.text);
    ASSERT_TRUE(read.has_value()) << pair.english.text;
    EXPECT_EQ(read->sure, pair.sure);
    EXPECT_EQ(read->possible, pair.possible);
    EXPECT_EQ(read->german.words.size(), pair.german.words.size());
    EXPECT_NEAR(read->german_log_probability, pair.german_log_probability, 1e-9);
  }
  EXPECT_FALSE(read_pair("The girl sleeps.", "Das Haus schläft.").has_value());
  EXPECT_FALSE(read_pair("The girl sleeps.", "").has_value());
}

bool translates(const char* english, const char* german) {
  return pair_probability(english, german).german_given_english > impossible;
}

TEST(PairProbability, TheContextChoosesTheSense) {
  const std::vector<std::array<const char*, 3>> rows = {
      {"The girl sleeps on the bank.", "Das Mädchen schläft am Ufer.",
       "Das Mädchen schläft auf der Bank."},
      {"The girl sleeps in the bank.", "Das Mädchen schläft in der Bank.",
       "Das Mädchen schläft im Ufer."},
      {"The girl waits at the spring.", "Das Mädchen wartet an der Quelle.",
       "Das Mädchen wartet an der Feder."},
      {"The girl tightens the spring.", "Das Mädchen zieht die Feder an.",
       "Das Mädchen zieht die Quelle an."},
      {"The girl waits in spring.", "Das Mädchen wartet im Frühling.",
       "Das Mädchen wartet im Quelle."},
      {"The girl writes a letter.", "Das Mädchen schreibt einen Brief.",
       "Das Mädchen schreibt einen Buchstaben."},
      {"The girl learns the letter.", "Das Mädchen lernt den Buchstaben.",
       "Das Mädchen lernt den Brief."},
      {"The crane flies over the bridge.", "Der Kranich fliegt über die Brücke.",
       "Der Kran fliegt über die Brücke."},
      {"The crane lifts the car.", "Der Kran hebt das Auto.", "Der Kranich hebt das Auto."},
      {"The girl eats the nut.", "Das Mädchen isst die Nuss.", "Das Mädchen isst die Mutter."},
      {"The dog eats the nut.", "Der Hund frisst die Nuss.", "Der Hund isst die Nuss."},
      {"The girl watches the match.", "Das Mädchen verfolgt das Spiel.",
       "Das Mädchen verfolgt das Streichholz."},
      {"The girl presses the key.", "Das Mädchen drückt die Taste.",
       "Das Mädchen drückt den Schlüssel."},
      {"The room is light.", "Das Zimmer ist hell.", "Das Zimmer ist leicht."},
      {"The bag is light.", "Die Tasche ist leicht.", "Die Tasche ist hell."},
      {"The girl puts the book onto the table.", "Das Mädchen legt das Buch auf den Tisch.",
       "Das Mädchen stellt das Buch auf den Tisch."},
      {"The girl puts the bottle onto the table.", "Das Mädchen stellt die Flasche auf den Tisch.",
       "Das Mädchen legt die Flasche auf den Tisch."},
      {"The lamp is new because it is small.", "Die Lampe ist neu, weil sie klein ist.",
       "Die Lampe ist neu, weil er klein ist."},
      {"The table is new because it is small.", "Der Tisch ist neu, weil er klein ist.",
       "Der Tisch ist neu, weil es klein ist."},
      {"The teacher hopes that she is happy.", "Die Lehrerin hofft, dass sie glücklich ist.",
       "Der Lehrer hofft, dass sie glücklich ist."},
      {"The girl slept when it rained.", "Das Mädchen schlief, als es regnete.",
       "Das Mädchen schlief, wenn es regnete."},
      {"The girl sleeps when it rains.", "Das Mädchen schläft, wenn es regnet.",
       "Das Mädchen schläft, als es regnet."},
      {"The girl must not sleep.", "Das Mädchen darf nicht schlafen.",
       "Das Mädchen muss nicht schlafen."},
      {"The girl does not have to sleep.", "Das Mädchen muss nicht schlafen.",
       "Das Mädchen darf nicht schlafen."},
      {"Where does the girl go?", "Wohin geht das Mädchen?", "Wo geht das Mädchen?"},
      {"Where does the girl sleep?", "Wo schläft das Mädchen?", "Wohin schläft das Mädchen?"},
      {"The girl helps the dog.", "Das Mädchen hilft dem Hund.", "Das Mädchen hilft den Hund."},
      {"The girl helps the dog.", "Das Mädchen unterstützt den Hund.",
       "Das Mädchen unterstützt dem Hund."},
      {"The girl does not buy a lamp.", "Das Mädchen kauft keine Lampe.",
       "Das Mädchen kauft nicht eine Lampe."},
      {"The girl likes to sleep.", "Das Mädchen schläft gern.", "Das Mädchen mag schlafen."},
      {"The man likes the house.", "Das Haus gefällt dem Mann.", "Das Haus gefällt den Mann."},
  };
  for (const auto& [english, right, wrong] : rows) {
    EXPECT_TRUE(translates(english, right)) << english << " " << right;
    EXPECT_FALSE(translates(english, wrong)) << english << " " << wrong;
  }
  EXPECT_FALSE(translates("", ""));
  EXPECT_FALSE(translates("Call me Ishmael.", "Nennt mich Ishmael."));
  EXPECT_FALSE(translates("The girl sleeps.", "Das Mädchen schläft"));
}

}  // namespace
}  // namespace heed::microworld::bilingual
