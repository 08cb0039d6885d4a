// Tells a sentence in English: makes the choices that the English shows, writes it as they are
// made, and records what it means.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "microworld/bilingual/meaning.h"
#include "microworld/bilingual/sentence_writer.h"
#include "microworld/bilingual/words.h"

namespace heed::microworld::bilingual {

// Writes the sentence with the writer and returns its meaning.
Sentence tell_english(SentenceWriter& writer, const Grammar& grammar);

// Whether words mean something by themselves.
enum class WordKind { function, content };

// Whether the auxiliary stands before the subject, as in questions.
enum class WordOrder { plain, inverted };

// Whether a question word stands before the subject.
enum class QuestionWord { none, written };

// Whether a clause may be negated.
enum class Negation { allowed, excluded };

// A mass noun has no plural.
enum class Countability { countable, mass };

// Noun phrases stand where sentences ask for them; where decides what they may be.
struct NounPlace {
  Classes classes = 0;                     // of the noun
  Classes excluded = 0;                    // none of these
  bool object = false;                     // pronouns: "him"
  bool plain = false;                      // a noun with "the", "a", "this" or "my" alone
  bool singular = false;                   // singular only
  bool negated = false;                    // in a negated clause: no "every", no numbers
  bool relative = false;                   // may have a relative clause
  bool may_deny = false;                   // may have "no"
  bool indefinite = false;                 // "a", a number, "many" or "no": what there is
  bool noun = false;                       // no pronoun of something said before
  const NounPhrase* apart_from = nullptr;  // names and pronouns that are not to come again
};

// Tells the parts of one English sentence.
class EnglishTeller {
 public:
  EnglishTeller(SentenceWriter& writer, const Grammar& grammar)
      : writer_(writer), grammar_(grammar) {}

  Sentence tell();

 private:
  // A pronoun that can speak of something said before.
  struct Antecedent {
    Pronoun pronoun = Pronoun::it;
    Referent referent = 0;
    Classes classes = 0;
    Sex sex = Sex::none;  // that the pronoun tells
    Number number = Number::singular;
  };

  // What a clause may be.
  struct ClausePlace {
    Asked asked = Asked::nothing;
    unsigned tenses = ~0U;     // bits of Tense
    bool main = false;         // may start with a time
    bool bare = false;         // has no places, times and the like unless the verb needs them
    bool simple = false;       // present or past alone
    bool clauses = false;      // the verb takes a clause
    bool whether = false;      // and this is a question
    bool affirmative = false;  // is not negated
    bool relative = false;     // says of a noun what it does or is like
    Classes object = 0;        // not none: the verb has an object or place of these
  };

  // A form that a clause can have.
  struct FormOption {
    Tense tense = Tense::present;
    bool progressive = false;
    const Modal* modal = nullptr;
    double weight = 0.0;
  };

  // english_sentence.cc
  void tell_statement();
  void tell_yes_no_question();
  void tell_open_question();
  void tell_reported();
  void tell_joined();
  void tell_existence();
  Clause tell_second(const ClausePlace& place, double weather);
  Clause tell_weather(const ClausePlace& place);
  void end(std::string_view mark);

  // english_predicates.cc
  std::vector<const Adjective*> predicate_adjectives(const Clause& clause, Classes subject) const;
  std::vector<FormOption> form_options(const Clause& clause, const ClausePlace& place,
                                       Classes subject) const;
  void choose_form(Clause& clause, const ClausePlace& place, Negation negation);
  bool predicate_fits(Predicate predicate, const Clause& clause, Classes subject,
                      const ClausePlace& place) const;
  void choose_predicate(Clause& clause, const ClausePlace& place, Classes subject);

  // english_clause.cc
  Clause tell_clause(const ClausePlace& place);
  Clause start_clause(Asked asked);
  void tell_subject(Clause& clause, const ClausePlace& place, WordOrder order,
                    QuestionWord question_word);
  Clause tell_relative(const NounPhrase& head, Concept& pronoun);
  void tell_rest(Clause& clause, const ClausePlace& place, WordOrder order);
  void choose_actor(NounPlace& subject);
  void tell_after_copula(Clause& clause);
  void tell_complements(Clause& clause, const ClausePlace& place);
  void tell_adjuncts(Clause& clause, const ClausePlace& place);
  bool question_word(Clause& clause, const ClausePlace& place);

  // english_verbs.cc
  bool has_auxiliary(const Clause& clause, WordOrder order) const;
  void write_auxiliary(Clause& clause, WordOrder order);
  void write_after_auxiliary(Clause& clause, WordOrder order);
  bool verb_fits(const Verb& verb, const Clause& clause, const ClausePlace& place,
                 Classes subject) const;
  std::string verb_text(const Verb& verb, const Clause& clause, WordOrder order) const;
  void choose_verb(Clause& clause, const ClausePlace& place, Classes subject, WordOrder order);

  // english_nouns.cc
  NounPhrase begin_noun_phrase(const NounPlace& place);
  void finish_noun_phrase(NounPhrase& phrase, const NounPlace& place);
  NounPhrase tell_noun_phrase(const NounPlace& place);
  void tell_noun(NounPhrase& phrase, const NounPlace& place);
  void write_head(NounPhrase& phrase, const NounPlace& place);
  PrepositionalPhrase tell_place(std::span<const Relation> relations, Classes located,
                                 const NounPlace& object);
  std::vector<const Noun*> fitting_nouns(const NounPlace& place, Number number,
                                         Countability countability) const;
  void remember(const NounPhrase& phrase);
  std::vector<Antecedent> antecedents() const;
  Classes classes_of(const NounPhrase& phrase) const;

  // Writes all words of the text with one concept.
  void write_words(std::string_view text, Concept concept_of_words,
                   WordKind kind = WordKind::function);
  Adverbial tell_phrase(std::span<const Phrase> phrases);
  Adverbial write_phrase(const Phrase& phrase);
  Concept next_concept() { return ++concepts_; }

  SentenceWriter& writer_;
  const Grammar& grammar_;
  Sentence sentence_;
  Concept concepts_ = 0;
  std::vector<NounPhrase> said_;  // what pronouns of the second clause can speak of
  bool second_clause_ = false;
};

// The bits of TimePhrase::tenses that a clause can have.
unsigned tense_bits(const Clause& clause);

// The English words of phrases.
std::vector<std::string> phrase_texts(std::span<const Phrase> phrases);

// English inflection.

// "goes", "tries", "washes".
std::string third_person(std::string_view base);

// "an" before a vowel.
std::string_view indefinite_article(std::string_view next);

std::string_view english_pronoun(Pronoun pronoun);             // "they"
std::string_view english_object_pronoun(Pronoun pronoun);      // "them"
std::string_view english_possessive_pronoun(Pronoun pronoun);  // "their"

// "two" to "twelve".
std::string_view english_number(std::size_t count);

// How a verb agrees with its subject.
enum class EnglishPerson { first_singular, third_singular, plural };

EnglishPerson english_person(const NounPhrase& subject);

std::string_view form_of_be(EnglishPerson person, Tense tense);

}  // namespace heed::microworld::bilingual
