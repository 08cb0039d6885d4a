#include "microworld/bilingual/words.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "microworld/tables.h"

namespace heed::microworld::bilingual {
namespace {

using namespace classes;

template <class Names>
std::size_t index_in(const Names& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  check(found != std::ranges::end(names), "a word is of no known kind");
  return static_cast<std::size_t>(found - std::ranges::begin(names));
}

Classes read_classes(std::string_view text) {
  Classes all = 0;
  for (const std::string_view name : parts_of(text, ' ')) all |= class_of(name);
  return all;
}

Sex read_sex(std::string_view text) {
  constexpr std::string_view names[] = {"", "male", "female", "either"};
  return static_cast<Sex>(index_in(names, text));
}

// The words of a column, after those that end in a colon.
class Forms {
 public:
  explicit Forms(std::string_view text) : forms_(parts_of(text, ' ')) {
    const auto first =
        std::ranges::find_if(forms_, [](std::string_view form) { return !form.ends_with(':'); });
    for (auto mark = forms_.begin(); mark != first; ++mark) {
      marks_.push_back(mark->substr(0, mark->size() - 1));
    }
    forms_.erase(forms_.begin(), first);
  }

  std::string_view operator[](std::size_t form) const {
    return form < forms_.size() ? forms_[form] : std::string_view();
  }
  // Whether a mark is there, which is then taken away.
  bool take(std::string_view mark) { return std::erase(marks_, mark) > 0; }
  // What is left of them.
  std::string_view preposition() const { return marks_.empty() ? std::string_view() : marks_[0]; }

 private:
  std::vector<std::string_view> forms_;
  std::vector<std::string_view> marks_;
};

GermanNoun read_german_noun(std::string_view text) {
  if (text.empty()) return {};
  constexpr std::string_view genders[] = {"m", "f", "n"};
  const Forms forms(text);
  return {.singular = forms[0],
          .gender = static_cast<Gender>(index_in(genders, forms[1])),
          .plural = forms[2],
          .oblique = forms[3]};
}

Noun read_noun(const TableRow& row) {
  return {.english = row[0],
          .plural = row[1],
          .classes = read_classes(row[2]),
          .german = {read_german_noun(row[3]), read_german_noun(row[4])},
          .sex = read_sex(row[5])};
}

Adjective read_adjective(const TableRow& row) {
  const Forms german(row[1]);
  return {.english = row[0],
          .german = german[0],
          .stem = german[1],
          .classes = read_classes(row[2]),
          .english_comparative = row[3],
          .german_comparative = row[4],
          .synonym = row[5],
          .colour = row[6] == "colour"};
}

GermanVerb read_german_verb(std::string_view text) {
  Forms forms(text);
  return {.infinitive = forms[0],
          .participle = forms[1],
          .present = forms[2],
          .past = forms[3],
          .prefix = forms[4],
          .sein = forms.take("sein"),
          .reflexive = forms.take("sich"),
          .object = forms.take("dat") ? Case::dative : Case::accusative,
          .preposition = forms.preposition()};
}

Verb read_verb(const TableRow& row) {
  constexpr std::string_view frames[] = {"intransitive", "transitive", "ditransitive",
                                         "motion",       "position",   "placement",
                                         "clause",       "question",   "impersonal"};
  Forms forms(row[1]);
  const bool stative = forms.take("stative");
  return {.frame = static_cast<Frame>(index_in(frames, row[0])),
          .english = forms[0],
          .tail = forms[4],
          .past = forms[1],
          .participle = forms[2],
          .gerund = forms[3],
          .german = {read_german_verb(row[4]), read_german_verb(row[5])},
          .subject = read_classes(row[2]),
          .object = read_classes(row[3]),
          .preposition = forms.preposition(),
          .instrument = read_classes(row[6]),
          .stative = stative};
}

// The rows of words.tsv, by their sections.
struct Words {
  std::vector<Noun> nouns;
  std::vector<Name> names;
  std::vector<Adjective> adjectives;
  std::vector<Verb> verbs;
};

const Words& words() {
  static const Words all = [] {
    Words result;
    const WordTables& tables = bilingual_tables();
    for (const TableRow& row : tables.rows("nouns")) result.nouns.push_back(read_noun(row));
    for (const TableRow& row : tables.rows("names")) {
      result.names.push_back({.name = row[0], .sex = read_sex(row[1])});
    }
    for (const TableRow& row : tables.rows("adjectives")) {
      result.adjectives.push_back(read_adjective(row));
    }
    for (const TableRow& row : tables.rows("verbs")) result.verbs.push_back(read_verb(row));
    return result;
  }();
  return all;
}

constexpr Case accusative = Case::accusative, dative = Case::dative;

// What lies on a table or in a box, and what stands there.
constexpr Classes small = flat | upright;

// Where: the German prepositions of both cases take the dative.
constexpr std::array place_relations = {
    Relation{"in", "in", dative, interior | institution, living | flyer},
    Relation{"in", "in", dative, container, small},
    Relation{"on", "auf", dative, surface, small},
    Relation{"on", "auf", dative, outside, living | flyer},
    Relation{"on", "an", dative, shore, living | flyer},
    Relation{"at", "an", dative, edge | source, living | flyer},
    Relation{"under", "unter", dative, beneath, living | small},
    Relation{"behind", "hinter", dative, landmark, living | vehicle},
    Relation{"beside", "neben", dative, landmark, living | small},
    Relation{"in front of", "vor", dative, landmark, living | vehicle},
};

// Where to: those prepositions take the accusative.
constexpr std::array goal_relations = {
    Relation{"into", "in", accusative, interior | institution, living | flyer},
    Relation{"into", "in", accusative, container, small | toy},
    Relation{"onto", "auf", accusative, surface | outside, small | toy | flyer},
    Relation{"under", "unter", accusative, beneath, small | toy | animal},
    Relation{"behind", "hinter", accusative, landmark, living | toy},
    Relation{"to", "zu", dative, destination, living | vehicle},
    Relation{"through", "durch", accusative, passage, living | vehicle | flyer},
    Relation{"over", "über", accusative, crossing, living | flyer},
    Relation{"out of", "aus", dative, interior | institution, living | flyer},
};

constexpr std::array modal_verbs = {
    Modal{"can",
          "can",
          "could",
          true,
          {"kann", "kannst", "kann", "können", "könnt", "können"},
          "konnte"},
    Modal{"must",
          "must",
          "",
          true,
          {"muss", "musst", "muss", "müssen", "müsst", "müssen"},
          "",
          {"darf", "darfst", "darf", "dürfen", "dürft", "dürfen"}},
    Modal{"should", "should", "", true, {"soll", "sollst", "soll", "sollen", "sollt", "sollen"}},
    Modal{"may", "may", "", true, {"darf", "darfst", "darf", "dürfen", "dürft", "dürfen"}},
    Modal{"wants to",
          "want to",
          "wanted to",
          false,
          {"will", "willst", "will", "wollen", "wollt", "wollen"},
          "wollte"},
    Modal{"has to",
          "have to",
          "had to",
          false,
          {"muss", "musst", "muss", "müssen", "müsst", "müssen"},
          "musste"},
    Modal{.english = "likes to",
          .english_plain = "like to",
          .english_past = "liked to",
          .auxiliary = false,
          .gladly = true},
};

constexpr unsigned now = tense_bit(Tense::present), then = tense_bit(Tense::past),
                   soon = tense_bit(Tense::future), going_on = progressive_bit;

constexpr std::array time_phrases = {
    TimePhrase{{"yesterday/1", "gestern/1"}, then},
    TimePhrase{{"last/1 week/2", "letzte/1 Woche/2"}, then},
    TimePhrase{{"last/1 summer/2", "letzten/1 Sommer/2"}, then},
    TimePhrase{{"today/1", "heute/1"}, now | then | soon | going_on},
    TimePhrase{{"now/1", "jetzt/1", "nun/1"}, now | going_on},
    TimePhrase{{"every/1 day/2", "jeden/1 Tag/2"}, now},
    TimePhrase{{"tomorrow/1", "morgen/1"}, soon},
    TimePhrase{{"next/1 week/2", "nächste/1 Woche/2"}, soon},
    TimePhrase{{"the/1 day/1 after/1 tomorrow/1", "übermorgen/1"}, soon},
    TimePhrase{{"the/1 day/1 before/1 yesterday/1", "vorgestern/1"}, then},
    TimePhrase{{"on/1 Monday/2", "am/1 Montag/2"}, then | soon},
    TimePhrase{{"on/1 Tuesday/2", "am/1 Dienstag/2"}, then | soon},
    TimePhrase{{"on/1 Wednesday/2", "am/1 Mittwoch/2"}, then | soon},
    TimePhrase{{"on/1 Thursday/2", "am/1 Donnerstag/2"}, then | soon},
    TimePhrase{{"on/1 Friday/2", "am/1 Freitag/2"}, then | soon},
    TimePhrase{{"on/1 Saturday/2", "am/1 Samstag/2", "am/1 Sonnabend/2"}, then | soon},
    TimePhrase{{"on/1 Sunday/2", "am/1 Sonntag/2"}, then | soon},
    TimePhrase{{"in/1 the/1 morning/2", "am/1 Morgen/2"}, now | then},
    TimePhrase{{"in/1 the/1 evening/2", "am/1 Abend/2", "abends/1,2"}, now | then},
    TimePhrase{{"at/1 night/2", "in/1 der/?2 Nacht/2", "nachts/1,2"}, now | then},
    TimePhrase{{"in/1 spring/2", "im/1 Frühling/2"}, now | then},
    TimePhrase{{"in/1 winter/2", "im/1 Winter/2"}, now | then},
};

constexpr std::array frequency_phrases = {
    Phrase{"often/1", "oft/1", "häufig/1"},  Phrase{"always/1", "immer/1", "stets/1"},
    Phrase{"never/1", "nie/1", "niemals/1"}, Phrase{"sometimes/1", "manchmal/1"},
    Phrase{"seldom/1", "selten/1"},
};

constexpr std::array manner_phrases = {
    Phrase{"quickly/1", "schnell/1", "rasch/1"},
    Phrase{"slowly/1", "langsam/1"},
    Phrase{"quietly/1", "leise/1"},
    Phrase{"happily/1", "fröhlich/1"},
    Phrase{"alone/1", "allein/1"},
};

}  // namespace

const Grammar& whole_grammar() {
  static const Grammar grammar{
      .nouns = words().nouns,
      .names = words().names,
      .adjectives = words().adjectives,
      .verbs = words().verbs,
      .relations = place_relations,
      .directions = goal_relations,
      .modals = modal_verbs,
      .times = time_phrases,
      .frequencies = frequency_phrases,
      .manners = manner_phrases,
  };
  return grammar;
}

std::span<const Noun> all_nouns() { return words().nouns; }
std::span<const Adjective> all_adjectives() { return words().adjectives; }
std::span<const Verb> all_verbs() { return words().verbs; }

}  // namespace heed::microworld::bilingual
