// What an English sentence says, as far as its German translation depends on it. The English
// procedure fills it in while it writes; the German one reads it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "microworld/bilingual/sentence_writer.h"
#include "microworld/bilingual/words.h"

namespace heed::microworld::bilingual {

enum class Determiner {
  definite,
  indefinite,
  demonstrative,
  possessive,
  every,
  no,
  number,
  many,
  some,
  bare,
};

enum class Pronoun { i, you, he, she, it, we, they };

// Whom or what a noun phrase speaks of, an index of Sentence::referents.
using Referent = std::size_t;

// What is known of a referent when the German sentence is begun.
struct ReferentFacts {
  const Noun* noun = nullptr;  // none: a name or a pronoun without a noun
  Number number = Number::singular;
  Sex sex = Sex::none;  // either: the English does not tell
};

struct Clause;

struct NounPhrase {
  enum class Kind { noun, name, pronoun, question };  // question: "who", "what"

  Kind kind = Kind::noun;
  Number number = Number::singular;
  Referent referent = 0;
  Determiner determiner = Determiner::definite;
  Pronoun pronoun = Pronoun::he;  // or whose it is: "my", "her"
  std::size_t count = 0;          // of a number: 2 to 12
  bool mass = false;              // "the milk"
  const Noun* noun = nullptr;
  const Name* name = nullptr;
  std::vector<const Adjective*> adjectives;
  bool personal = false;  // of a question: "who", not "what"

  Concept determiner_concept = 0;
  Concept head_concept = 0;  // of the noun, name or pronoun
  std::vector<Concept> adjective_concepts;

  std::vector<Clause> relative;  // none or one
  Concept relative_concept = 0;  // of the relative pronoun
};

enum class Predicate {
  verb,        // sleeps, reads a book
  adjective,   // is old
  comparison,  // is older than the cat
  profession,  // is a teacher
  place,       // is in the garden
  existence,   // there is a cat in the garden
};

// A noun phrase after a preposition. Relations whose `german` is empty take no preposition.
struct PrepositionalPhrase {
  const Relation* relation = nullptr;
  NounPhrase object;
  Concept concept_of_preposition = 0;
};

// A word or phrase of the vocabulary, with a concept for each number in it.
struct Adverbial {
  const Phrase* phrase = nullptr;
  std::array<Concept, 5> concepts{};  // by number; the first is unused
};

// What a question asks for.
enum class Asked { nothing, truth, subject, object, place, direction, time, reason };

// What a relative pronoun stands for.
enum class Gap { none, subject, object, place };

struct Clause {
  Predicate predicate = Predicate::verb;
  Tense tense = Tense::present;
  bool progressive = false;
  const Modal* modal = nullptr;  // of the present or past
  bool negated = false;
  Asked asked = Asked::nothing;
  Gap gap = Gap::none;

  const Verb* verb = nullptr;
  NounPhrase subject;
  std::optional<NounPhrase> object;
  std::optional<NounPhrase> recipient;
  std::optional<PrepositionalPhrase> place;  // where, or where to
  std::optional<NounPhrase> instrument;
  const Adjective* adjective = nullptr;
  std::optional<NounPhrase> standard;  // of a comparison: "than the cat"
  std::optional<Adverbial> time;
  bool time_first = false;
  std::optional<Adverbial> frequency;
  std::optional<Adverbial> manner;

  Concept verb_concept = 0;
  Concept auxiliary_concept = 0;  // of "has", "will" or a modal verb
  Concept negation_concept = 0;
  Concept preposition_concept = 0;  // of an object, or the "with" of an instrument
  Concept instrument_concept = 0;
  Concept adjective_concept = 0;
  Concept standard_concept = 0;  // "than"
  Concept question_concept = 0;  // "where", "why"
};

// How a sentence joins its clauses.
enum class Conjunction {
  none,
  that,
  whether,
  because,
  although,
  when,
  on_condition,  // "if"
  meanwhile,     // "while"
  before,
  also,  // "and"
  but,
};

struct Sentence {
  Clause main;
  Conjunction conjunction = Conjunction::none;
  std::vector<Clause> second;  // none or one
  bool second_first = false;   // "When it rains, the boy sleeps."
  Concept conjunction_concept = 0;
  Concept comma_concept = 0;
  Concept end_concept = 0;
  std::vector<ReferentFacts> referents;
};

}  // namespace heed::microworld::bilingual
