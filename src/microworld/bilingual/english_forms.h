// English inflection.
#pragma once

#include <string>
#include <string_view>

#include "microworld/bilingual/meaning.h"

namespace heed::microworld::bilingual {

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

std::string_view form_of_be(EnglishPerson person, bool past);

}  // namespace heed::microworld::bilingual
