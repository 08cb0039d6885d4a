// Prepositions, modal verbs, fixed phrases, and the grammar as a whole.
#include <array>

#include "microworld/bilingual/tables.h"

namespace heed::microworld::bilingual::tables {
namespace {

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

}  // namespace heed::microworld::bilingual::tables

namespace heed::microworld::bilingual {

const Grammar& whole_grammar() {
  static const Grammar grammar{
      .nouns = all_nouns(),
      .names = all_names(),
      .adjectives = all_adjectives(),
      .verbs = all_verbs(),
      .relations = tables::place_relations,
      .directions = tables::goal_relations,
      .modals = tables::modal_verbs,
      .times = tables::time_phrases,
      .frequencies = tables::frequency_phrases,
      .manners = tables::manner_phrases,
  };
  return grammar;
}

}  // namespace heed::microworld::bilingual
