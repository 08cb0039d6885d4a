// The words that sentence pairs are made of: rows of English words with their German translations.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace heed::microworld::bilingual {

enum class Gender { masculine, feminine, neuter };
enum class Number { singular, plural };
enum class Case { nominative, accusative, dative };

// A set of what a noun can be or do, one bit each. A verb accepts nouns that share a bit with it.
// A word of several senses has a row for each sense, and no place in a sentence accepts the bits of
// two of them: what stands around the word decides.
using Classes = std::uint64_t;

namespace classes {
// Their names in words.tsv, by bit.
inline constexpr std::string_view names[] = {
    "person",   "animal",   "flyer",   "food",        "drink",       "readable", "writable",
    "wearable", "vehicle",  "device",  "flat",        "upright",     "openable", "plant",
    "picture",  "music",    "cutter",  "opener",      "pen",         "striker",  "toy",
    "story",    "interior", "surface", "beneath",     "landmark",    "edge",     "shore",
    "passage",  "crossing", "thing",   "button",      "sign",        "hardware", "machine",
    "game",     "lighter",  "candle",  "room",        "destination", "bird",     "fact",
    "load",     "inquiry",  "prey",    "ball",        "container",   "tall",     "high",
    "waters",   "outside",  "source",  "institution", "mail"};

constexpr Classes class_of(std::string_view name) {
  const auto* const found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) check(false, "there is no such class of nouns");
  return Classes{1} << (found - std::begin(names));
}

// Those that the grammar names.
inline constexpr Classes person = class_of("person"), animal = class_of("animal"),
                         flyer = class_of("flyer"), food = class_of("food"),
                         vehicle = class_of("vehicle"), flat = class_of("flat"),
                         upright = class_of("upright"), toy = class_of("toy"),
                         interior = class_of("interior"), surface = class_of("surface"),
                         beneath = class_of("beneath"), landmark = class_of("landmark"),
                         edge = class_of("edge"), shore = class_of("shore"),
                         passage = class_of("passage"), crossing = class_of("crossing"),
                         thing = class_of("thing"), machine = class_of("machine"),
                         room = class_of("room"), destination = class_of("destination"),
                         container = class_of("container"), outside = class_of("outside"),
                         source = class_of("source"), institution = class_of("institution");
inline constexpr Classes living = person | animal;
inline constexpr Classes creature = animal | flyer;
inline constexpr Classes place =
    interior | outside | landmark | edge | passage | crossing | room | destination;
}  // namespace classes

// Whether the person is a man, a woman, or either, which a pronoun may tell. Nouns of the last kind
// have a German noun for a man and one for a woman.
enum class Sex { none, male, female, either };

struct GermanNoun {
  std::string_view singular;
  Gender gender = Gender::masculine;
  std::string_view plural = {};
  std::string_view oblique = {};  // accusative and dative singular where they differ: "Jungen"
};

// A noun without an English plural is a mass noun: "milk".
struct Noun {
  std::string_view english;
  std::string_view plural;
  Classes classes = 0;
  std::array<GermanNoun, 2> german;  // the second: a synonym, or for a woman; or none
  Sex sex = Sex::none;
};

struct Name {
  std::string_view name;  // the same in both languages
  Sex sex = Sex::none;
};

struct Adjective {
  std::string_view english;
  std::string_view german;
  std::string_view stem = {};  // before endings, where it differs: "dunkl"
  Classes classes = 0;
  bool predicative = true;                    // "the house is old"
  std::string_view english_comparative = {};  // "older"; none: not compared
  std::string_view german_comparative = {};
  std::string_view synonym = {};  // a second German word, with regular endings
  bool colour = false;            // may follow another adjective
};

// What stands with a verb.
enum class Frame {
  intransitive,  // sleeps
  transitive,    // reads the book, waits for the bus
  ditransitive,  // gives the child an apple
  motion,        // runs into the garden
  position,      // lies on the table
  placement,     // puts the book on the table
  clause,        // says that ...
  question,      // asks whether ...
  impersonal,    // it rains
};

struct GermanVerb {
  std::string_view infinitive;    // without a separable prefix: "rufen"
  std::string_view participle;    // with it: "angerufen"
  std::string_view present = {};  // stem of du and er, where it changes: "schläf"
  std::string_view past = {};     // first person of an irregular preterite: "schlief"
  std::string_view prefix = {};   // separable: "an"
  bool sein = false;              // the perfect takes sein, not haben
  bool reflexive = false;
  Case object = Case::accusative;
  std::string_view preposition = {};  // of a prepositional object, in the case `object`
};

struct Verb {
  Frame frame = Frame::intransitive;
  std::string_view english;  // "wake"
  std::string_view tail;     // a word after it that makes one verb with it: "up"
  std::string_view past;
  std::string_view participle;
  std::string_view gerund;           // empty: no progressive
  std::array<GermanVerb, 2> german;  // the second: a synonym, or none
  Classes subject = classes::person;
  Classes object = 0;                 // of the object, or what is put; of the place where one lives
  std::string_view preposition = {};  // of the object: "for"
  Classes instrument = 0;             // "with the knife"
  bool stative = false;               // its past is told in the preterite
};

// A preposition of place with the nouns that it takes.
struct Relation {
  std::string_view english;
  std::string_view german;
  Case object = Case::dative;
  Classes classes = 0;  // of the noun
  Classes located = 0;  // who or what can be there
};

// A modal verb. Words are separated by spaces.
struct Modal {
  std::string_view english;                 // "wants to"
  std::string_view english_plain;           // after do, and of all persons but the third: "want to"
  std::string_view english_past;            // none: no past
  bool auxiliary = true;                    // negated by "not" alone, asked without do
  std::array<std::string_view, 6> present;  // ich, du, er, wir, ihr, sie
  std::string_view past = {};               // "konnte"
  std::array<std::string_view, 6> negated = {};  // present, where "not" calls for another verb
  bool gladly = false;                           // no modal in German, but the adverb "gern"
};

// A fixed phrase: words separated by spaces, each with the number of the words of the other
// language that it is aligned with after a slash, "in/1 the/1 morning/2" and "am/1 Morgen/2".
struct Phrase {
  std::string_view english;
  std::string_view german;
  std::string_view synonym = {};
};

// When something happens, with the tenses that it goes with.
struct TimePhrase {
  Phrase phrase;
  unsigned tenses = 0;  // bits of Tense, and progressive_bit
};

enum class Tense { present, past, perfect, future };

inline constexpr unsigned tense_bit(Tense tense) { return 1U << static_cast<unsigned>(tense); }
inline constexpr unsigned progressive_bit = 1U << 4;  // "is sleeping now"

// Kinds of sentences.
enum class SentenceKind { statement, yes_no_question, open_question, reported, joined };

// Forms of a verb group.
enum class Form { present, progressive, past, perfect, future, modal, modal_past };

// How likely a sentence has what it may have. A test narrows it to a language of few sentences.
struct Likelihoods {
  std::array<double, 5> kinds = {0.36, 0.08, 0.08, 0.18, 0.30};
  std::array<double, 7> forms = {0.32, 0.10, 0.24, 0.10, 0.08, 0.12, 0.04};
  std::array<double, 6> predicates = {0.76, 0.10, 0.03, 0.03, 0.06, 0.02};  // of a Predicate
  std::array<double, 10> determiners = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
  double pronouns = 1.0;  // these are relative to what each part of a sentence has otherwise
  double names = 1.0;
  double actor = 0.85;  // of a subject: somebody or something that does things
  double adjective = 0.36;
  double relative = 0.10;
  double negation = 0.13;
  double place = 0.22;
  double instrument = 0.35;
  double time = 0.20;
  double frequency = 0.10;
  double manner = 0.15;
  double fronted = 0.3;  // of times and of subordinate clauses
};

// The words of the two languages and how likely they are told.
struct Grammar {
  std::span<const Noun> nouns;
  std::span<const Name> names;
  std::span<const Adjective> adjectives;
  std::span<const Verb> verbs;
  std::span<const Relation> relations;   // where
  std::span<const Relation> directions;  // where to
  std::span<const Modal> modals;
  std::span<const TimePhrase> times;
  std::span<const Phrase> frequencies;  // often
  std::span<const Phrase> manners;      // quickly
  Likelihoods likelihoods = {};
};

const Grammar& whole_grammar();

std::span<const Noun> all_nouns();
std::span<const Adjective> all_adjectives();
std::span<const Verb> all_verbs();

}  // namespace heed::microworld::bilingual
