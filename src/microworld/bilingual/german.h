// Tells in German what an English sentence means. The choices that the English leaves open
// (synonyms, tense, the order of words, how "you" is meant) are made at random, with known
// probabilities.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "microworld/bilingual/meaning.h"
#include "microworld/bilingual/sentence_writer.h"
#include "microworld/bilingual/words.h"

namespace heed::microworld::bilingual {

// German inflection: articles, adjective endings, nouns, pronouns and verbs.

// What adjective endings depend on.
enum class Declension {
  weak,    // after der, dieser, jeder
  mixed,   // after ein, kein, mein
  strong,  // after a number, viele, einige, or nothing
};

// der, die, das, den, dem.
std::string_view definite_article(Gender gender, Number number, Case which);

// The ending of dieser and jeder.
std::string_view strong_ending(Gender gender, Number number, Case which);

// The ending of ein, kein, mein: as the strong one, or none.
std::string_view mixed_ending(Gender gender, Number number, Case which);

std::string_view adjective_ending(Declension declension, Gender gender, Number number, Case which);

// The adjective with its ending; "lila" takes none.
std::string inflected(const Adjective& adjective, std::string_view german, std::string_view ending);

std::string noun_form(const GermanNoun& noun, Number number, Case which);

// The pronoun of relative clauses: as the definite article, but "denen".
std::string_view relative_pronoun(Gender gender, Number number, Case which);

// Persons of a verb: ich, du, er, wir, ihr, sie. Sie, of politeness, has the verb of sie.
enum class Person { ich, du, er, wir, ihr, sie };

// "ich", "mich", "mir".
std::string_view personal_pronoun(Person person, Gender gender, Case which);

std::string_view reflexive_pronoun(Person person);

// Finite forms, without a separable prefix.
std::string present_form(const GermanVerb& verb, Person person);
std::string past_form(const GermanVerb& verb, Person person);

// sein, haben, werden.
const GermanVerb& verb_sein();
const GermanVerb& verb_haben();
const GermanVerb& verb_werden();

// Finite form from the first person of a preterite: "konnte".
std::string past_from_first(std::string_view first, Person person);

// A preposition joined with a definite article: "in" and "dem" are "im"; empty if they stay apart.
std::string_view contraction(std::string_view preposition, std::string_view article);

// The word with a capital first letter, also ä, ö, ü.
std::string capitalised(std::string_view word);

// Writes the German sentence. Choices among words list them as Choice::beginnings, as words that
// stand somewhere in the sentence: the order of German is known only when all words are.
void tell_german(SentenceWriter& writer, const Sentence& sentence);

// Where the finite verb stands.
enum class VerbPlace { first, second, last };

using Words = std::vector<Word>;

// Tells the parts of one German sentence.
class GermanTeller {
 public:
  GermanTeller(SentenceWriter& writer, const Sentence& sentence);

  void tell();

 private:
  // The German noun of a referent, and the gender of its pronouns.
  struct Resolved {
    const GermanNoun* noun = nullptr;
    Gender gender = Gender::masculine;  // of articles
    std::optional<Gender> pronoun_gender;
  };

  // A finite verb and what stands at the end of the clause, in order.
  struct VerbGroup {
    const GermanVerb* verb = nullptr;
    Word finite;
    Words last;
    Words adverbs;  // "gern", "gerade"
  };

  // How a noun phrase is told.
  struct Telling {
    Case which = Case::nominative;
    Concept denied = 0;         // "kein": the concept of the negation
    Words* relative = nullptr;  // receives the relative clause, to stand further on
  };

  // The parts of a clause between the front and its end.
  struct Middle {
    Words subject, reflexive, accusative_pronoun, dative_pronoun, time, adverbs, recipient,
        early_place, object, negation, late_adverbs, manner, prepositional, instrument, place,
        predicate;
  };

  // german.cc
  void tell_joined();
  void write(Words words);
  std::string_view conjunction_word(bool& main_order);

  // german_clause.cc
  Words clause(const Clause& clause, VerbPlace place);
  Words existence(const Clause& clause);
  Words question_word(const Clause& clause, const GermanVerb& verb);
  Words front(const Clause& clause, Middle& middle);
  Words relative_clause(const NounPhrase& head, const Clause& clause);
  void fill_middle(const Clause& clause, const VerbGroup& group, Person person, VerbPlace place,
                   Middle& middle);
  Words ordered(const Clause& clause, const Middle& middle);
  void tell_object(const Clause& clause, const VerbGroup& group, Concept& negation, Middle& middle);
  Words extraposed_;  // relative clauses that stand after the end of the clause

  // german_verbs.cc
  const GermanVerb& choose_verb(const Clause& clause);
  VerbGroup verb_group(const Clause& clause, Person person, VerbPlace place);
  bool tells_preterite(const Clause& clause, Person person);

  // german_nouns.cc
  Words noun_phrase(const NounPhrase& phrase, const Telling& telling);
  Words noun(const NounPhrase& phrase, const Telling& telling);
  Words prepositional(std::string_view preposition, Concept concept_of_preposition,
                      const NounPhrase& phrase, Case which);
  Words pronoun(const NounPhrase& phrase, Case which);
  std::string determiner(const NounPhrase& phrase, Gender gender, const Telling& telling);
  std::string possessive_stem(Pronoun possessor);
  Resolved& resolve(Referent referent);
  Gender pronoun_gender(Referent referent);
  Gender pronoun_gender_of_subject(const NounPhrase& subject);
  Person person_of(const NounPhrase& subject);
  Person address();
  Words phrase(const Adverbial& adverbial);
  std::string_view adjective_word(const Adjective& adjective, std::string_view ending);

  std::size_t choose_word(std::span<const std::string> words, std::span<const double> weights);
  static Word mark(std::string_view text, std::vector<Concept> sure = {});
  static Word content(std::string_view text, std::vector<Concept> sure);

  SentenceWriter& writer_;
  const Sentence& sentence_;
  std::vector<Resolved> referents_;
  std::optional<Person> address_;
  int phrases_ = 0;
};

}  // namespace heed::microworld::bilingual
