// Sentence pairs: agreement, the order of words, alignment, and what the context decides.
#include "microworld/bilingual/bilingual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "heed/error.h"

namespace heed::microworld::bilingual {
namespace {

constexpr std::int64_t many = 10000;
constexpr std::int64_t some = 4000;

bool is_mark(const std::string& text) { return text == "," || text == "." || text == "?"; }

std::string lower(std::string text) {
  if (text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

// What an article allows: written by hand from a school grammar.
struct Allowed {
  char gender;  // m, f, n or p (plural)
  char which;   // n, a or d
  const char* adjective;
};

const std::map<std::string, std::vector<Allowed>>& articles() {
  static const std::map<std::string, std::vector<Allowed>> table = {
      {"der", {{'m', 'n', "e"}, {'f', 'd', "en"}}},
      {"die", {{'f', 'n', "e"}, {'f', 'a', "e"}, {'p', 'n', "en"}, {'p', 'a', "en"}}},
      {"das", {{'n', 'n', "e"}, {'n', 'a', "e"}}},
      {"den", {{'m', 'a', "en"}, {'p', 'd', "en"}}},
      {"dem", {{'m', 'd', "en"}, {'n', 'd', "en"}}},
  };
  return table;
}

const std::map<std::string, std::vector<Allowed>>& like_kein() {
  static const std::map<std::string, std::vector<Allowed>> table = {
      {"", {{'m', 'n', "er"}, {'n', 'n', "es"}, {'n', 'a', "es"}}},
      {"e", {{'f', 'n', "e"}, {'f', 'a', "e"}, {'p', 'n', "en"}, {'p', 'a', "en"}}},
      {"en", {{'m', 'a', "en"}, {'p', 'd', "en"}}},
      {"em", {{'m', 'd', "en"}, {'n', 'd', "en"}}},
      {"er", {{'f', 'd', "en"}}},
  };
  return table;
}

// What the determiner allows; nothing if it says nothing about it (numbers, "ein paar").
std::vector<Allowed> allowed_by(const std::string& determiner) {
  static const std::map<std::string, std::string> joined = {
      {"im", "dem"},  {"am", "dem"},  {"zum", "dem"}, {"vom", "dem"},
      {"ins", "das"}, {"ans", "das"}, {"zur", "der"}};
  const auto contraction = joined.find(determiner);
  const std::string word = contraction == joined.end() ? determiner : contraction->second;
  const auto article = articles().find(word);
  if (article != articles().end()) return article->second;
  for (const std::string stem : {"dies", "jed"}) {
    if (!word.starts_with(stem)) continue;
    const std::map<std::string, std::string> as = {
        {"er", "der"}, {"e", "die"}, {"es", "das"}, {"en", "den"}, {"em", "dem"}};
    return articles().at(as.at(word.substr(stem.size())));
  }
  for (const std::string stem :
       {"kein", "mein", "dein", "sein", "unser", "euer", "eur", "ihr", "ein"}) {
    if (!word.starts_with(stem)) continue;
    const auto row = like_kein().find(word.substr(stem.size()));
    if (row != like_kein().end()) return row->second;
  }
  return {};
}

char gender_of(const Word& word) {
  if (word.number == Number::plural) return 'p';
  return "mfn"[static_cast<std::size_t>(word.gender)];
}

TEST(Bilingual, ArticlesAdjectivesAndNounsAgree) {
  const Bilingual world(1);
  std::int64_t checked = 0, adjectives = 0;
  for (std::int64_t i = 0; i < many; ++i) {
    const Pair pair = world.pair(i);
    std::map<int, std::vector<const Word*>> phrases;
    for (const WrittenWord& word : pair.german.words) {
      if (word.word.phrase != 0) phrases[word.word.phrase].push_back(&word.word);
    }
    for (const auto& [id, words] : phrases) {
      const Word& noun = *words.back();
      ASSERT_EQ(noun.role, Role::noun) << pair.german.text;
      const std::string& text = noun.text;
      if (noun.number == Number::plural && noun.which == Case::dative) {
        EXPECT_TRUE(text.ends_with('n') || text.ends_with('s')) << pair.german.text;
      }
      const std::string first = lower(words[0]->text);
      const std::vector<Allowed> allowed =
          words[0]->role == Role::determiner ? allowed_by(first) : std::vector<Allowed>{};
      if (allowed.empty() || words[1]->text == "paar") continue;
      const char which = "nad"[static_cast<std::size_t>(noun.which)];
      const auto row = std::find_if(allowed.begin(), allowed.end(), [&](const Allowed& one) {
        return one.gender == gender_of(noun) && one.which == which;
      });
      ASSERT_NE(row, allowed.end()) << first << " " << text << " in: " << pair.german.text;
      ++checked;
      for (std::size_t w = 1; w + 1 < words.size(); ++w) {
        if (words[w]->role != Role::adjective || words[w]->text == "lila") continue;
        const std::string& adjective = words[w]->text;
        const std::string ending = row->adjective;
        EXPECT_TRUE(adjective.ends_with(ending)) << adjective << " in: " << pair.german.text;
        ++adjectives;
      }
    }
  }
  EXPECT_GT(checked, many);
  EXPECT_GT(adjectives, many / 4);
}

TEST(Bilingual, FiniteVerbsStandWhereTheyBelong) {
  const Bilingual world(2);
  int last = 0, first = 0, second = 0;
  for (std::int64_t i = 0; i < many; ++i) {
    const Pair pair = world.pair(i);
    const auto& words = pair.german.words;
    for (std::size_t w = 0; w < words.size(); ++w) {
      const Role role = words[w].word.role;
      if (role == Role::last_finite) {
        ++last;  // the end of the clause, but for what is compared with
        const std::string& next = words.at(w + 1).word.text;
        EXPECT_TRUE(is_mark(next) || next == "als") << pair.german.text;
      }
      if (role == Role::first_finite) {
        ++first;  // of a question, or after a clause
        const bool starts =
            w == 0 || words[w - 1].word.text == "," || words[w - 1].word.text == "dann";
        EXPECT_TRUE(starts) << pair.german.text;
      }
      if (role == Role::second_finite) {
        ++second;
        EXPECT_GT(w, 0U) << pair.german.text;
      }
    }
    // One constituent before the verb: at most one noun outside relative clauses.
    int nouns = 0;
    bool relative = false;
    for (std::size_t w = 0; w < words.size(); ++w) {
      if (words[w].word.role == Role::second_finite) break;
      if (words[w].word.role == Role::first_finite) nouns = 0;
      if (words[w].word.text == ",") relative = !relative;
      if (words[w].word.role == Role::noun && !relative) ++nouns;
    }
    if (words[0].word.role != Role::first_finite &&
        std::any_of(words.begin(), words.end(), [](const WrittenWord& word) {
          return word.word.role == Role::second_finite;
        })) {
      EXPECT_LE(nouns, 1) << pair.german.text;
    }
  }
  EXPECT_GT(last, 2000);
  EXPECT_GT(first, 1000);
  EXPECT_GT(second, 5000);
}

// After these words the verb stands last, whatever the marks of the words say.
TEST(Bilingual, SubordinateClausesEndInAVerb) {
  std::set<std::string> finite = {"ist", "sind", "bin", "bist", "seid", "war", "waren", "warst"};
  const std::vector<std::string> starts = {"dass", "weil", "obwohl", "bevor", "während", "ob"};
  std::map<std::string, int> seen;
  for (std::int64_t i = 0; i < 3000; ++i) {
    const Pair pair = Bilingual(3).pair(i);
    const auto& words = pair.german.words;
    for (std::size_t w = 0; w < words.size(); ++w) {
      if (std::find(starts.begin(), starts.end(), lower(words[w].word.text)) == starts.end()) {
        continue;
      }
      std::size_t end = w;
      while (!is_mark(words[end].word.text)) ++end;
      // A relative clause would end it too early; subordinate clauses have none.
      const bool has_final =
          std::any_of(words.begin() + static_cast<std::ptrdiff_t>(w),
                      words.begin() + static_cast<std::ptrdiff_t>(end),
                      [](const WrittenWord& one) { return one.word.role == Role::last_finite; });
      EXPECT_TRUE(has_final) << pair.german.text;
      ++seen[lower(words[w].word.text)];
    }
  }
  for (const std::string& start : starts) EXPECT_GT(seen[start], 10) << start;
}

TEST(Bilingual, WordsStandWhereTheirSpansSay) {
  for (std::int64_t i = 0; i < 1000; ++i) {
    const Pair pair = Bilingual(4).pair(i);
    for (const WrittenSentence* sentence : {&pair.english, &pair.german}) {
      std::size_t end = 0;
      for (const WrittenWord& word : sentence->words) {
        EXPECT_EQ(word.span.in(sentence->text), word.word.text);
        const std::string_view gap =
            std::string_view(sentence->text).substr(end, word.span.begin - end);
        EXPECT_EQ(gap, end == 0 || is_mark(word.word.text) ? "" : " ") << sentence->text;
        EXPECT_EQ(word.word.text.find(' '), std::string::npos);
        end = word.span.end;
      }
      EXPECT_EQ(end, sentence->text.size());
    }
  }
}

TEST(Bilingual, EveryContentWordIsAligned) {
  std::int64_t crossing = 0;
  for (std::int64_t i = 0; i < some; ++i) {
    const Pair pair = Bilingual(5).pair(i);
    std::vector<bool> english(pair.english.words.size()), german(pair.german.words.size());
    EXPECT_TRUE(std::is_sorted(pair.sure.begin(), pair.sure.end()));
    std::size_t highest = 0;
    for (const Link& link : pair.sure) {
      ASSERT_LT(link.english, english.size());
      ASSERT_LT(link.german, german.size());
      english[link.english] = german[link.german] = true;
      crossing += link.german < highest ? 1 : 0;
      highest = std::max(highest, link.german);
    }
    for (const Link& link : pair.possible) {
      ASSERT_LT(link.english, english.size());
      ASSERT_LT(link.german, german.size());
      EXPECT_EQ(std::count(pair.sure.begin(), pair.sure.end(), link), 0);
    }
    for (std::size_t w = 0; w < english.size(); ++w) {
      if (!pair.english.words[w].word.content) continue;
      EXPECT_TRUE(english[w]) << pair.english.words[w].word.text << ": " << pair.english.text;
    }
    for (std::size_t w = 0; w < german.size(); ++w) {
      if (!pair.german.words[w].word.content) continue;
      EXPECT_TRUE(german[w]) << pair.german.words[w].word.text << ": " << pair.german.text;
    }
  }
  EXPECT_GT(crossing, some);  // more than one a sentence: the alignment is not the diagonal
}

TEST(Bilingual, PairsAreFunctionsOfSeedAndIndex) {
  const Bilingual world(7);
  EXPECT_EQ(to_json_line(world.pair(12)), to_json_line(Bilingual(7).pair(12)));
  EXPECT_NE(world.pair(12).english.text, Bilingual(8).pair(12).english.text);
  EXPECT_NE(world.pair(12).english.text, world.pair(13).english.text);
  EXPECT_THROW(world.pair(-1), Error);
  std::vector<std::string> told;
  const PairSummary summary = tell_pairs(world, {.begin = 10, .end = 5010}, [&](const Pair& pair) {
    told.push_back(pair.german.text);
  });
  ASSERT_EQ(told.size(), 5000U);
  EXPECT_EQ(told[2], world.pair(12).german.text);
  EXPECT_EQ(summary.english.count(), 5000);
  EXPECT_THROW(tell_pairs(world, {.begin = 3, .end = 2}, [](const Pair&) {}), Error);
}

TEST(Bilingual, TheWorldIsLarge) {
  std::set<std::string> english, german, sentences;
  for (std::int64_t i = 0; i < some; ++i) {
    const Pair pair = Bilingual(9).pair(i);
    for (const WrittenWord& word : pair.english.words) english.insert(lower(word.word.text));
    for (const WrittenWord& word : pair.german.words) german.insert(word.word.text);
    sentences.insert(pair.english.text);
  }
  EXPECT_GT(english.size(), 600U);
  EXPECT_GT(german.size(), 1000U);
  EXPECT_GT(sentences.size(), static_cast<std::size_t>(some) * 9 / 10);
}

}  // namespace
}  // namespace heed::microworld::bilingual
