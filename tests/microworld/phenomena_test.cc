// The phenomena: they occur, the truth points at the right words, and what the truth says can be
// known from what came before.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "microworld/microworld.h"
#include "microworld/scenes.h"

namespace heed::microworld {
namespace {

constexpr std::int64_t story_count = 8000;

// A word of several senses, or a name of several bearers, and its equally likely readings.
struct AmbiguousWord {
  std::string word;
  std::vector<std::string> readings;
};

std::vector<AmbiguousWord> ambiguous_words() {
  std::vector<AmbiguousWord> words;
  for (const auto& scenes : {sense_scenes(), name_scenes()}) {
    for (const Scene& scene : scenes) {
      if (words.empty() || words.back().word != scene.word) {
        words.push_back({std::string(scene.word), {}});
      }
      words.back().readings.emplace_back(scene.reading);
    }
  }
  return words;
}

const std::vector<Story>& stories() {
  static const std::vector<Story> all = [] {
    std::vector<Story> made;
    const Microworld world(2024);
    for (std::int64_t i = 0; i < story_count; ++i) made.push_back(world.story(i));
    return made;
  }();
  return all;
}

// Maximal runs of letters and apostrophes.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '\'') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool stands_alone(const std::string& text, const Span& span) {
  return span.begin > 0 && text[span.begin - 1] == ' ' && span.end < text.size() &&
         !std::isalpha(static_cast<unsigned char>(text[span.end]));
}

TEST(Phenomena, MarksPointAtTheirWords) {
  std::size_t senses = 0, names = 0, adjectives = 0, culprits = 0;
  for (const Story& story : stories()) {
    for (const SenseMark& mark : story.senses) {
      ASSERT_EQ(mark.span.in(story.text), mark.word);
      ASSERT_TRUE(stands_alone(story.text, mark.span)) << story.text;
    }
    for (const NameMark& mark : story.names) {
      ASSERT_EQ(mark.span.in(story.text), mark.name);
      ASSERT_TRUE(stands_alone(story.text, mark.span)) << story.text;
    }
    for (const AdjectiveMark& mark : story.adjectives) {
      ASSERT_TRUE(stands_alone(story.text, mark.noun));
      ASSERT_GE(mark.adjectives.size(), 1u);
      ASSERT_LE(mark.adjectives.size(), 3u);
      std::size_t end = mark.adjectives.front().begin;
      for (const Span& adjective : mark.adjectives) {
        ASSERT_TRUE(stands_alone(story.text, adjective));
        const std::string join = story.text.substr(end, adjective.begin - end);
        ASSERT_TRUE(join.empty() || join == " " || join == ", " || join == " and ") << join;
        end = adjective.end;
      }
      ASSERT_EQ(mark.noun.begin, end + 1);
    }
    std::set<std::string> marked;
    for (const SenseMark& mark : story.senses) marked.insert(mark.word);
    for (const NameMark& mark : story.names) marked.insert(mark.name);
    const bool two = story.kind == StoryKind::outing || story.kind == StoryKind::tale;
    const bool album = story.kind == StoryKind::album;
    if (!album) {
      ASSERT_EQ(marked.size(), two ? 2u : story.kind == StoryKind::letter ? 1u : 0u) << story.text;
      ASSERT_EQ(story.senses.empty(),
                story.kind != StoryKind::outing && story.kind != StoryKind::letter);
      ASSERT_EQ(story.names.empty(), story.kind != StoryKind::tale);
      ASSERT_FALSE(story.adjectives.empty());
    }
    senses += story.senses.size();
    names += story.names.size();
    adjectives += story.adjectives.size();
    culprits += story.culprit.has_value();
    ASSERT_EQ(story.culprit.has_value(), story.kind == StoryKind::mystery);
  }
  EXPECT_GT(senses, 5000u);
  EXPECT_GT(names, 4000u);
  EXPECT_GT(adjectives, 20000u);
  EXPECT_GT(culprits, 1500u);
}

TEST(Phenomena, AmbiguousWordsNeverStandUnmarked) {
  std::set<std::string> ambiguous;
  for (const AmbiguousWord& word : ambiguous_words()) ambiguous.insert(word.word);
  EXPECT_EQ(ambiguous.size(), 13u);
  for (const Story& story : stories()) {
    const std::vector<std::string> words = words_of(story.text);
    const auto found = std::count_if(words.begin(), words.end(), [&](const std::string& word) {
      return ambiguous.contains(word);
    });
    ASSERT_EQ(static_cast<std::size_t>(found), story.senses.size() + story.names.size())
        << story.text;
  }
}

TEST(Phenomena, TwoNounPhrasesWithAdjectivesShareASentence) {
  const auto sentence_holds_two = [](const Story& story) {
    for (std::size_t i = 1; i < story.adjectives.size(); ++i) {
      const std::size_t begin = story.adjectives[i - 1].noun.end;
      const std::size_t length = story.adjectives[i].adjectives[0].begin - begin;
      if (story.text.substr(begin, length).find('.') == std::string::npos) return true;
    }
    return false;
  };
  const auto& all = stories();
  EXPECT_GT(std::count_if(all.begin(), all.end(), sentence_holds_two), story_count / 4);
}

TEST(Phenomena, TheWordAfterANounDependsOnEachOfItsAdjectives) {
  const auto after = [](const Story& story, const AdjectiveMark& mark) {
    return words_of(story.text.substr(mark.noun.end, 40)).at(0);
  };
  // A lone adjective settles the word, and no word can be guessed without it.
  std::map<std::string, std::string, std::less<>> settled;
  std::map<std::string, int> counts;
  int nouns = 0;
  for (const Story& story : stories()) {
    if (story.kind == StoryKind::album) continue;  // there, nothing need follow of the adjectives
    for (const AdjectiveMark& mark : story.adjectives) {
      const std::string word = after(story, mark);
      ++counts[word];
      ++nouns;
      if (mark.adjectives.size() > 1) continue;
      const auto [known, fresh] =
          settled.emplace(std::string(mark.adjectives[0].in(story.text)), word);
      ASSERT_EQ(known->second, word) << known->first;
    }
  }
  EXPECT_GE(settled.size(), 40u);
  EXPECT_GE(counts.size(), 20u);
  for (const auto& [word, count] : counts) EXPECT_LT(count, nouns / 6) << word;

  // Of two, either is as likely to settle it.
  int first = 0, pairs = 0;
  for (const Story& story : stories()) {
    if (story.kind == StoryKind::album) continue;
    for (const AdjectiveMark& mark : story.adjectives) {
      if (mark.adjectives.size() != 2) continue;
      const std::string word = after(story, mark);
      const bool by_first = word == settled.find(mark.adjectives[0].in(story.text))->second;
      ASSERT_TRUE(by_first || word == settled.find(mark.adjectives[1].in(story.text))->second);
      first += by_first;
      ++pairs;
    }
  }
  EXPECT_GT(pairs, 2000);
  EXPECT_NEAR(first, pairs / 2.0, 5.0 * std::sqrt(pairs / 4.0));
}

// A mention of a word of several senses, or of a name, with what stands around it.
struct Mention {
  std::string word, reading;
  std::set<std::string> before;  // the 30 words before the word's own sentence
  std::string sentence;          // the word's own sentence, up to the word
  std::string after;             // the three words after it
};

std::vector<Mention> first_mentions() {
  std::vector<Mention> mentions;
  for (const Story& story : stories()) {
    if (story.kind == StoryKind::album) continue;  // of captions, not of scenes
    std::vector<SenseMark> marks = story.senses;
    for (const NameMark& mark : story.names) marks.push_back({mark.name, mark.referent, mark.span});
    std::set<std::string> seen;
    for (const SenseMark& mark : marks) {
      if (!seen.insert(mark.word).second) continue;
      const std::size_t sentence = story.text.find_last_of(".!?", mark.span.begin) + 2;
      const std::vector<std::string> before = words_of(story.text.substr(0, sentence));
      const std::vector<std::string> after = words_of(story.text.substr(mark.span.end, 40));
      const std::size_t window = std::min<std::size_t>(before.size(), 30);
      mentions.push_back({mark.word,
                          mark.sense,
                          {before.end() - static_cast<std::ptrdiff_t>(window), before.end()},
                          story.text.substr(sentence, mark.span.begin - sentence),
                          after.at(0) + " " + after.at(1) + " " + after.at(2)});
    }
  }
  return mentions;
}

TEST(Phenomena, TheReadingIsCertainBeforeTheSentenceOfTheWord) {
  const std::vector<Mention> mentions = first_mentions();
  // Naive Bayes over the words before, learned from the first half, is right on the second.
  std::map<std::string, std::map<std::string, std::map<std::string, double>>> counts;
  for (std::size_t i = 0; i < mentions.size() / 2; ++i) {
    auto& words = counts[mentions[i].word][mentions[i].reading];
    for (const std::string& word : mentions[i].before) words[word] += 1.0;
    words[""] += 1.0;  // mentions in all
  }
  for (std::size_t i = mentions.size() / 2; i < mentions.size(); ++i) {
    std::map<double, std::string> scores;
    for (auto& [reading, words] : counts[mentions[i].word]) {
      double score = 0.0;
      for (const std::string& word : mentions[i].before) {
        score += std::log((words[word] + 0.1) / (words[""] + 0.2));
      }
      scores[score] = reading;
    }
    ASSERT_EQ(scores.rbegin()->second, mentions[i].reading) << mentions[i].word;
    ASSERT_GT(scores.rbegin()->first - std::next(scores.rbegin())->first, 5.0);  // nats
  }
}

TEST(Phenomena, TheSentenceOfTheWordGivesNothingAwayBeforeItAndAllAfterIt) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> sentences, after;
  for (const Mention& mention : first_mentions()) {
    std::string sentence;  // without the names and pronouns of people
    for (const std::string& word : words_of(mention.sentence)) {
      const bool general = std::islower(static_cast<unsigned char>(word[0])) && word != "he" &&
                           word != "she" && word != "him" && word != "her" && word != "me";
      if (general) sentence += word + " ";
    }
    sentences[mention.word][mention.reading].insert(sentence);
    after[mention.word][mention.reading].insert(mention.after);
  }
  for (const auto& [word, readings] : sentences) {
    for (const auto& [reading, texts] : readings) {
      EXPECT_EQ(texts, readings.begin()->second) << word << " as " << reading;
    }
  }
  for (const auto& [word, readings] : after) {
    std::map<std::string, std::string> owner;
    for (const auto& [reading, texts] : readings) {
      EXPECT_GE(texts.size(), 3u);
      for (const std::string& text : texts) {
        const auto [known, fresh] = owner.emplace(text, reading);
        EXPECT_TRUE(fresh) << word << ": \"" << text << "\" after " << known->second << " and "
                           << reading;
      }
    }
  }
}

std::string first_word(std::string_view text) { return words_of(text).at(0); }

TEST(Phenomena, TheWordAfterAnAmbiguousWordTellsItsReading) {
  std::map<std::string, std::map<std::string, std::string>> readings;  // by word and first word
  for (const Mention& mention : first_mentions()) {
    const auto [known, fresh] =
        readings[mention.word].emplace(first_word(mention.after), mention.reading);
    EXPECT_EQ(known->second, mention.reading) << mention.word << " " << mention.after;
  }
}

TEST(Phenomena, AnswersFollowTheirWordAndAllEvidenceStandsBefore) {
  std::map<std::string, int> counts;
  for (const Story& story : stories()) {
    for (const EvidenceMark& mark : story.evidence) {
      ++counts[mark.subject];
      ASSERT_EQ(mark.answer.begin, mark.word.end);
      ASSERT_EQ(story.text[mark.answer.begin], ' ');
      ASSERT_FALSE(mark.evidence.empty());
      for (const Span& span : mark.evidence) {
        ASSERT_LE(span.end, mark.word.end) << mark.subject << ": " << story.text;
        ASSERT_EQ(words_of(span.in(story.text)).empty(), false);
      }
    }
  }
  for (const auto& [subject, count] : counts) EXPECT_GE(count, 20) << subject;
  for (const Caption& caption : sense_captions()) {
    EXPECT_TRUE(counts.contains(fmt::format("{}/{}", caption.word, caption.reading)));
  }
  for (const char* subject : {"adjective", "deed", "pronoun", "manner", "culprit"}) {
    EXPECT_TRUE(counts.contains(subject)) << subject;
  }
}

// In an album, the line up to the word without its evidence leaves the answer open; the evidence
// decides the subject, and where only one word can follow, that word.
TEST(Phenomena, EvidenceDecidesTheAnswer) {
  // By line without evidence and evidence: subjects and first words of answers.
  std::map<std::string, std::map<std::string, std::set<std::string>>> subjects, answers;
  for (const Story& story : stories()) {
    if (story.kind != StoryKind::album) continue;
    for (const EvidenceMark& mark : story.evidence) {
      if (mark.subject == "adjective") continue;  // of several, each has a tail
      const std::size_t line = story.text.rfind('\n', mark.word.begin) + 1;
      std::string frame = story.text.substr(line, mark.word.end - line), evidence;
      std::vector<Span> spans = mark.evidence;
      std::ranges::sort(spans, std::greater{}, &Span::begin);
      for (const Span& span : spans) {
        evidence += span.in(story.text);
        evidence += "; ";
        frame.replace(span.begin - line, span.end - span.begin, "_");
      }
      subjects[frame][evidence].insert(mark.subject);
      const bool one_word = mark.subject.find('/') == std::string::npos;
      if (one_word) answers[frame][evidence].insert(first_word(mark.answer.in(story.text)));
    }
  }
  const auto expect_decided = [](const auto& by_frame, int min_open) {
    int open = 0;
    for (const auto& [frame, by_evidence] : by_frame) {
      std::set<std::string> all;
      for (const auto& [evidence, decided] : by_evidence) {
        EXPECT_EQ(decided.size(), 1u) << frame << " / " << evidence;
        all.insert(decided.begin(), decided.end());
      }
      open += all.size() > 1;
    }
    EXPECT_GE(open, min_open);
  };
  expect_decided(subjects, 20);
  expect_decided(answers, 20);
}

TEST(Phenomena, ReadingsAreBalanced) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const Mention& mention : first_mentions()) ++counts[mention.word][mention.reading];
  for (const AmbiguousWord& word : ambiguous_words()) {
    int total = 0;
    for (const std::string& reading : word.readings) total += counts[word.word][reading];
    const double share = 1.0 / static_cast<double>(word.readings.size());
    for (const std::string& reading : word.readings) {
      EXPECT_NEAR(counts[word.word][reading], total * share,
                  5.0 * std::sqrt(total * share * (1.0 - share)))
          << word.word << " as " << reading;
    }
  }
}

TEST(Phenomena, TheMurdererIsNamedByTheClueFarBack) {
  int with_alibi = 0, mysteries = 0;
  std::array<int, 3> order{};
  for (const Story& story : stories()) {
    if (!story.culprit) continue;
    ++mysteries;
    const Culprit& culprit = *story.culprit;
    ASSERT_EQ(culprit.answer.in(story.text), culprit.name);
    ASSERT_EQ(culprit.clue_name.in(story.text), culprit.name);
    ASSERT_TRUE(culprit.clue.in(story.text).ends_with("belonged to the " + culprit.name + "."));
    ASSERT_TRUE(story.text.ends_with("therefore the murderer was the " + culprit.name + "."));
    ASSERT_EQ(culprit.answer.end + 1, story.text.size());

    const std::size_t from = culprit.clue_name.end;
    const std::string between = story.text.substr(from, culprit.answer.begin - from);
    ASSERT_GE(words_of(between).size(), 105u) << story.text;

    ASSERT_EQ(culprit.suspects.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      // Introduced once and heard as a witness once, guilty or not.
      ASSERT_LT(story.text.find("the " + culprit.suspects[i]), culprit.clue.begin);
      ASSERT_NE(between.find("The " + culprit.suspects[i] + " "), std::string::npos);
      order[i] += culprit.suspects[i] == culprit.name;
    }
    with_alibi += between.find("The " + culprit.name + " ") != std::string::npos;
  }
  EXPECT_EQ(with_alibi, mysteries);
  for (int count : order) {
    EXPECT_NEAR(count, mysteries / 3.0, 5.0 * std::sqrt(mysteries * 2.0 / 9.0));
  }
}

TEST(Phenomena, NothingButTheClueTellsTheMurderer) {
  // How often each way of being mentioned after the clue hits the murderer: one time in three.
  std::map<std::string, std::pair<int, int>> hits;
  for (const Story& story : stories()) {
    if (!story.culprit) continue;
    const std::string after = story.text.substr(story.culprit->clue.end);
    std::size_t at = std::string::npos;
    const std::string* first = nullptr;
    const std::string* last = nullptr;
    for (const std::string& suspect : story.culprit->suspects) {
      const std::size_t here = after.find("The " + suspect + " ");
      if (here < at) first = &suspect;
      at = std::min(at, here);
      if (after.find("\" said Inspector") < after.rfind("to the " + suspect)) {
        if (after.rfind("to the " + suspect) != std::string::npos) last = &suspect;
      }
    }
    for (const auto& [way, suspect] : {std::pair{"first witness", first}, {"addressed", last}}) {
      if (suspect == nullptr) continue;
      ++hits[way].second;
      hits[way].first += *suspect == story.culprit->name;
    }
  }
  ASSERT_EQ(hits.size(), 2u);
  for (const auto& [way, hit] : hits) {
    EXPECT_GT(hit.second, 1500) << way;
    EXPECT_NEAR(hit.first, hit.second / 3.0, 5.0 * std::sqrt(hit.second * 2.0 / 9.0)) << way;
  }
}

TEST(Phenomena, StoriesAreShortAndTheVocabularySmall) {
  std::set<std::string> vocabulary;
  for (const Story& story : stories()) {
    const std::vector<std::string> words = words_of(story.text);
    ASSERT_GE(words.size(), story.kind == StoryKind::album ? 40u : 60u) << story.text;
    ASSERT_LE(words.size(), story.kind == StoryKind::mystery ? 190u : 155u) << story.text;
    for (std::string word : words) {
      std::transform(word.begin(), word.end(), word.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      vocabulary.insert(word);
    }
  }
  EXPECT_GE(vocabulary.size(), 500u);
  EXPECT_LE(vocabulary.size(), 1200u);
}

TEST(Phenomena, TextIsPlainAndWellPunctuated) {
  for (const Story& story : stories()) {
    for (char c : story.text) {
      ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
      ASSERT_EQ(std::string_view("(){}|<>").find(c), std::string_view::npos) << story.text;
    }
    for (std::string_view fault : {"  ", " .", " ,", "..", ",,", " \n", "\n\n", " a a", " a e",
                                   " a i", " a o", " an b", ",.", "; ;"}) {
      ASSERT_EQ(story.text.find(fault), std::string::npos) << fault << " in " << story.text;
    }
    ASSERT_EQ(std::count(story.text.begin(), story.text.end(), '"') % 2, 0);
    for (std::size_t i = 0; i + 2 < story.text.size(); ++i) {
      if (story.text[i] == '.' && story.text[i + 1] == ' ' && story.text[i + 2] != '"') {
        ASSERT_TRUE(std::isupper(static_cast<unsigned char>(story.text[i + 2]))) << story.text;
      }
    }
  }
}

}  // namespace
}  // namespace heed::microworld
