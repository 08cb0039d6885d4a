// German inflection: articles, adjective endings, nouns, pronouns and verbs.
#pragma once

#include <string>
#include <string_view>

#include "microworld/bilingual/words.h"

namespace heed::microworld::bilingual {

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

// With its ending; "lila" takes none.
std::string inflected(const Adjective& adjective, std::string_view german, std::string_view ending);

std::string noun_form(const GermanNoun& noun, Number number, Case which);

// Of relative clauses: as the definite article, but "denen".
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

}  // namespace heed::microworld::bilingual
